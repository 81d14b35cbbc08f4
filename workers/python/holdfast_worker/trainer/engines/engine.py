"""What a training engine does. Two exist: plain torch (one rank) and DeepSpeed (any number)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypedDict

from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.engines.loss_scale import LossScale
from holdfast_worker.weights import Tensors
from holdfast_worker.wire.types import Optimizer, TrainerSpec


class NonFiniteError(BadDataError):
    """
    Too many consecutive steps were skipped because their loss or gradient norm was not finite.
    Redoing them gives the same result.
    """

    code = "non_finite"

    def __init__(self, message: str) -> None:
        super().__init__(f"non_finite: {message}")


class TrainingEngine(Protocol):
    """
    All methods are collective, unless they say otherwise: every rank calls them in the same order.
    """

    spec: TrainerSpec
    loss_scale: LossScale  # Losses are multiplied by it, gradients divided before their norm.
    rank: int
    world_size: int
    device: str
    model: Any  # What `policy_forward` calls.
    module: (
        Any  # The model as transformers made it, for the names that a file gives to its tensors.
    )

    def open(
        self, source: Any, *, optimizer: Optimizer, state: Path | None, world_size: int
    ) -> None:
        """
        Opens the source's model, with fresh optimizer state or the state that `world_size` ranks
        saved in `state`.
        """

    def change(self, optimizer: Optimizer) -> None:
        """
        Uses these settings for all later steps: a fork may train with settings different from its
        prefix's.
        """

    def backward(self, loss: Any, boundary: bool) -> None:
        """Accumulates gradients. `boundary` on the last micro-batch of an optimizer step."""

    def step(self, lr: float) -> float | None:
        """
        Clips, steps, clears. Returns the norm before clipping; None if it is not finite: then no
        rank stepped, and weights and optimizer state are unchanged.
        """

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value, in rank order, on every rank. Also the barrier."""

    def full_weights(self, names: list[str] | None = None) -> Tensors:
        """
        The module's tensors of these names; None: all that a model file contains. Complete, on the
        CPU, in the trainer's dtype. Empty except on rank 0.
        """

    def trained_parts(self) -> Tensors:
        """
        What this rank holds of the trained tensors, by name: on ZeRO 3 its flat shard of each, else
        rank 0 holds all and the others nothing. Views, on the engine's device. Not collective.
        """

    def whole(self, name: str, part: Any) -> Any:
        """
        The tensor `name` of which every rank has a `part`, on the CPU. None except on rank 0.
        """

    def part_of(self, name: str, whole: Any) -> Any:
        """This rank's part of a complete tensor `name`. Not collective."""

    def state_bytes(self) -> int:
        """Approximate bytes that `save_state` writes on this rank. Not collective."""

    def save_state(self, directory: Path) -> None:
        """
        Writes this rank's part of optimizer state (and what belongs to it) under `directory`, which
        exists.
        """


ParameterGroup = dict[str, Any]  # Of a torch optimizer: `params` and its settings.


class AdamwSettings(TypedDict):
    """What all groups share."""

    lr: float
    betas: tuple[float, float]
    eps: float


def parameter_groups(model: Any, optimizer: Optimizer) -> list[ParameterGroup]:
    """
    An optimizer's parameter groups: weight decay acts on matrices, not on biases and norms. Empty
    groups are omitted.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if optimizer.weight_decay == 0:
        return [{"params": trained, "weight_decay": 0.0}]
    groups = [
        {"params": [p for p in trained if p.dim() >= 2], "weight_decay": optimizer.weight_decay},
        {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def adamw_settings(optimizer: Optimizer) -> AdamwSettings:
    first, second = optimizer.betas
    return {"lr": optimizer.lr, "betas": (first, second), "eps": optimizer.eps}


def change_settings(groups: list[ParameterGroup], optimizer: Optimizer) -> None:
    """
    Changes the settings of an optimizer with state. Which parameters are decayed is part of that
    state's layout.
    """
    decays = any(group["weight_decay"] for group in groups)
    if decays != (optimizer.weight_decay != 0):
        raise BadDataError(
            f"Cannot continue with optimizer.weight_decay {optimizer.weight_decay} because the state was created "
            f"{'with' if decays else 'without'} weight decay: start a new run to turn it on or off"
        )
    settings = adamw_settings(optimizer)
    for group in groups:
        # Only AdamW reads its two moments' settings.
        group.update(settings if "betas" in group else {"lr": settings["lr"]})
        if group["weight_decay"]:
            group["weight_decay"] = optimizer.weight_decay


def check_same(held: str, wanted: Optimizer) -> None:
    """Raises if the state of the optimizer `held` would continue as that of a different one."""
    if held == wanted.name:
        return
    raise BadDataError(
        f"Cannot continue with optimizer {wanted.name} because the state is that of "
        f"{held}: start a new run to change it"
    )
