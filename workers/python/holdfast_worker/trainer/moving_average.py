"""The exponential moving average (EMA) of the trained weights over optimizer steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.engines.engine import TrainingEngine
from holdfast_worker.weights import Tensors

STATE_NAME = "ema.safetensors"
BYTES = 4  # Of each of its numbers.


class MovingAverage:
    """
    average <- decay * average + (1 - decay) * weights after every step, from the weights before the
    first one (Polyak & Juditsky 1992, with the weights of later steps decaying). In float32 in the
    host's memory: in bfloat16 the second term would be rounded away. Each rank holds the average of
    what it holds of the weights.
    """

    def __init__(self, engine: TrainingEngine, *, decay: float, state: Path | None) -> None:
        """
        Continues from `state`, a checkpoint's; without one, or if that has no average, it starts
        at the engine's weights.
        """
        self.engine, self.decay = engine, decay
        self.parts = {name: _on_host(part).clone() for name, part in engine.trained_parts().items()}
        if state is not None and (state / STATE_NAME).exists():
            self._load(state / STATE_NAME)

    def _load(self, file: Path) -> None:
        from safetensors import safe_open

        with safe_open(file, framework="pt") as saved:  # One tensor at a time.
            if self.parts and set(saved.keys()) != self.parts.keys():
                odd = min(set(saved.keys()) ^ self.parts.keys())
                raise BadDataError(
                    f"Cannot load '{file}' because only one of it and the model has '{odd}'"
                )
            for name, part in self.parts.items():
                part.copy_(self.engine.part_of(name, saved.get_tensor(name)))

    def update(self) -> None:
        """After a step."""
        for name, part in self.engine.trained_parts().items():
            self.parts[name].lerp_(_on_host(part), 1 - self.decay)

    def whole(self) -> Tensors:
        """
        The average of every trained tensor, complete, in float32. Collective. Empty except on rank
        0.
        """
        found = {name: self.engine.whole(name, part) for name, part in self.parts.items()}
        return {name: tensor for name, tensor in found.items() if tensor is not None}

    def bytes(self) -> int:
        """Bytes of its state in a checkpoint, which rank 0 writes."""
        trained = [p for p in self.engine.module.parameters() if p.requires_grad]
        return BYTES * sum(getattr(p, "ds_numel", p.numel()) for p in trained)


def save(tensors: Tensors, directory: Path) -> None:
    """Writes the state that `MovingAverage` continues from. `tensors`: its `whole()`."""
    from safetensors.torch import save_file

    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()}, directory / STATE_NAME
    )


def in_place_of(weights: Tensors, average: Tensors) -> Tensors:
    """`weights`, with the average of those that have one, in their data types."""
    return {
        name: average[name].to(tensor.dtype) if name in average else tensor
        for name, tensor in weights.items()
    }


def _on_host(part: Any) -> Any:
    return part.to("cpu").float()
