"""The random generators of a process: what is drawn next is part of a training state."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy
import torch


def rng_state() -> dict[str, Any]:
    """Of every random generator of this process. Plain values and tensors: no code is unpickled."""
    version, internal, gauss = random.getstate()
    legacy: Any = numpy.random.get_state()  # A tuple, or a dict where that is asked for.
    name, keys, position, has_gauss, cached = legacy
    state: dict[str, Any] = {
        "python": {"version": version, "internal": list(internal), "gauss": gauss},
        "numpy": {
            "name": name,
            "keys": torch.as_tensor(keys.astype("int64")),
            "rest": [position, has_gauss, cached],
        },
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def restore_rng_state(state: dict[str, Any]) -> None:
    """The counterpart of `rng_state`."""
    python, numbers = state["python"], state["numpy"]
    random.setstate((python["version"], tuple(python["internal"]), python["gauss"]))
    numpy.random.set_state(
        (numbers["name"], numbers["keys"].numpy().astype("uint32"), *numbers["rest"])
    )
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


@contextmanager
def untouched_randomness() -> Generator[None, None, None]:
    """Later draws are the same, whatever draws inside: opening a file twice must not move a run."""
    state = rng_state()
    try:
        yield
    finally:
        restore_rng_state(state)
