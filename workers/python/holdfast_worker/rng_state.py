"""The random generators of a process: the next draws are part of a training state."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NotRequired, TypedDict

import numpy
import torch
from torch import Tensor


class PythonState(TypedDict):
    version: int
    internal: list[int]
    gauss: float | None


class NumpyState(TypedDict):
    name: str
    keys: Tensor
    rest: list[Any]


class RngState(TypedDict):
    """Plain values and tensors: no code is unpickled."""

    python: PythonState
    numpy: NumpyState
    torch: Tensor
    cuda: NotRequired[Tensor]


def rng_state() -> RngState:
    """The state of every random generator of this process."""
    version, internal, gauss = random.getstate()
    legacy: Any = numpy.random.get_state()  # A tuple, or a dict if requested.
    name, keys, position, has_gauss, cached = legacy
    state: RngState = {
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


def restore_rng_state(state: RngState) -> None:
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
    """Later draws do not depend on draws inside: opening a file twice must not change a run."""
    state = rng_state()
    try:
        yield
    finally:
        restore_rng_state(state)
