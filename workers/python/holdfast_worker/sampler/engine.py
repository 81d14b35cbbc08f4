"""The interface of an engine behind the sampler's `Worker`; `huggingface.py` and `vllm_engine.py`
implement it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

import numpy as np

from holdfast_worker.sampler.slab import Completion, SampleRequest
from holdfast_worker.wire.types import Publication, Sampling


@dataclass(frozen=True)
class Watch:
    """How a long operation reports progress (tokens so far, and at most) and stops (`check` raises
    if cancelled).
    """

    progress: Callable[[int, int], None] = lambda tokens, total: None
    check: Callable[[], None] = lambda: None


class EngineInfo(TypedDict):
    """What an engine runs on."""

    device: str
    packages: dict[str, str]


class Engine(Protocol):
    """One model on one device. Every method is called from one thread."""

    vocabulary: int  # Size of the logits: token ids are below it.
    tokenizer: Any
    length_max: int  # Tokens that a sequence may have, prompt and completion together.
    repeats: (
        str  # "bits": the same slab gives the same bytes in any process of the same numerics; "no".
    )
    # How far, in log-probability, a cold load of the same weights may be off. 0: not at all.
    cold_tolerance: float

    def boot(self) -> EngineInfo:
        """Heavy imports and process-wide settings; no model. Returns device and packages."""

    def open_noise(self, model_path: str) -> None:
        """Opens the architecture of `model_path` with noise for weights, and its tokenizer."""

    def open_adapter(self, publication: Publication) -> None:
        """Opens the base model of an adapter with its own weights, with noise as the adapter or
        without one yet.
        """

    def replace(self, publication: Publication) -> int:
        """
        Replaces all weights in place, checking the hash of each tensor handed over. Returns how
        many there were.
        """

    def probe(self, sequences: Sequence[Sequence[int]]) -> np.ndarray:
        """
        float32: log pi(token | tokens before it) at temperature 1 of all positions but each
        sequence's first.
        """

    def cold_probe(self, directory: str, sequences: Sequence[Sequence[int]]) -> np.ndarray:
        """
        As `probe`, of the same weights loaded from `directory` in the ordinary way, which may
        replace what was in the engine.
        """

    def sample(
        self,
        requests: Sequence[SampleRequest],
        sampling: Sampling,
        *,
        seed: int,
        watch: Watch,
        ends: frozenset[int] = frozenset(),
    ) -> list[Completion]:
        """
        One completion for each request, in order. A request's randomness is of (seed, draw, sample,
        token) alone. `ends`: tokens that end a completion besides the model's own.
        """

    def close(self) -> None:
        """Ends everything that the engine started."""
