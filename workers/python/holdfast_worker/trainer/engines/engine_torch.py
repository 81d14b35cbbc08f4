"""
Plain torch on one rank. In 16 bits it keeps what DeepSpeed keeps: float32 weights and float32
gradient sums.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from holdfast_worker.gpu_memory import drop_garbage
from holdfast_worker.trainer.engines.engine import change_settings
from holdfast_worker.trainer.engines.loss_scale import LossScale
from holdfast_worker.trainer.engines.optimizers import optimizer_of
from holdfast_worker.trainer.model.model_source import ModelSource, saved_names
from holdfast_worker.trainer.model.opening import open_trained
from holdfast_worker.weights import Tensors
from holdfast_worker.wire.types import Optimizer, TrainerSpec

STATE_NAME = "torch_state.pt"


class TorchEngine:
    """
    One process. `masters` are the float32 weights that the optimizer steps; in float32 the
    model's own.
    """

    rank = 0
    world_size = 1

    def __init__(self, spec: TrainerSpec, device: str) -> None:
        self.spec = spec
        self.device = device
        self.loss_scale = LossScale(spec.dtype)
        self._forget()

    def _forget(self) -> None:
        """Frees the model and the optimizer's references to it."""
        self.model: Any = None
        self.module: Any = None
        self.optimizer: Any = None
        self.parameters: list[Any] = []
        self.masters: list[Any] = []

    def open(
        self, source: ModelSource, *, optimizer: Optimizer, state: Path | None, world_size: int = 1
    ) -> None:
        self._forget()  # Frees the old model before opening the new one.
        drop_garbage(self.device)
        model = open_trained(source, self.spec, device=self.device).to(self.device)
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.mixed = any(parameter.dtype != torch.float32 for parameter in self.parameters)
        self.masters = (
            [p.detach().float().clone() for p in self.parameters] if self.mixed else self.parameters
        )
        master_of = dict(zip(map(id, self.parameters), self.masters))
        self.clip = optimizer.clip_grad_norm
        self.optimizer = optimizer_of(
            model, optimizer, fused=True, master=lambda parameter: master_of[id(parameter)]
        )
        if state is not None:
            self._load_state(state, optimizer)
        self.model = self.module = model

    def _load_state(self, directory: Path, optimizer: Optimizer) -> None:
        # Through the CPU: on the GPU the file's tensors would be next to their copies, three times
        # the weights.
        saved = torch.load(directory / STATE_NAME, map_location="cpu", weights_only=True)
        settings = [
            {key: value for key, value in group.items() if key != "params"}
            for group in self.optimizer.param_groups
        ]
        self.optimizer.load_state_dict(saved["optimizer"])
        for group, wanted in zip(self.optimizer.param_groups, settings):
            group.update(wanted)  # Not the saved ones: a fork may change them.
        with torch.no_grad():
            for master, value in zip(self.masters, saved["masters"] if self.mixed else ()):
                master.copy_(value)

    def change(self, optimizer: Optimizer) -> None:
        change_settings(self.optimizer.param_groups, optimizer)
        self.clip = optimizer.clip_grad_norm

    def backward(self, loss: Any, boundary: bool) -> None:
        self.loss_scale.scaled(loss).backward()
        if self.mixed:
            self._move_gradients()

    def _move_gradients(self) -> None:
        """
        Adds the model's gradients to the float32 sums, so that no bit is lost over many
        micro-batches.
        """
        for parameter, master in zip(self.parameters, self.masters):
            if parameter.grad is None:
                continue
            if master.grad is None:
                master.grad = parameter.grad.float()
            else:
                master.grad.add_(parameter.grad)
            parameter.grad = None

    def step(self, lr: float) -> float | None:
        gradients = [master.grad for master in self.masters if master.grad is not None]
        if self.loss_scale.value != 1:
            torch._foreach_div_(gradients, self.loss_scale.value)
        norm = get_total_norm(gradients)
        grad_norm = norm.item()
        if not math.isfinite(grad_norm):
            self._clear()
            return None
        if self.clip is not None and grad_norm > self.clip:
            clip_grads_with_norm_(self.masters, self.clip, norm)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
        if self.mixed:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self.masters)
        self._clear()
        return grad_norm

    def _clear(self) -> None:
        for tensor in (*self.parameters, *self.masters):
            tensor.grad = None

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def full_weights(self, names: list[str] | None = None) -> Tensors:
        tensors = self.model.state_dict()
        return {name: tensors[name].detach().cpu() for name in names or saved_names(self.model)}

    def trained_parts(self) -> Tensors:
        trained = [(name, p) for name, p in self.module.named_parameters() if p.requires_grad]
        return {name: parameter.detach() for name, parameter in trained}

    def whole(self, name: str, part: Any) -> Any:
        return part

    def part_of(self, name: str, whole: Any) -> Any:
        return whole

    def state_bytes(self) -> int:
        state = [value for values in self.optimizer.state.values() for value in values.values()]
        tensors = [value for value in state if torch.is_tensor(value)]
        return sum(tensor.nbytes for tensor in (*tensors, *(self.masters if self.mixed else ())))

    def save_state(self, directory: Path) -> None:
        masters = (
            list(self.masters) if self.mixed else None
        )  # In float32 the model directory has them.
        torch.save(
            {"optimizer": self.optimizer.state_dict(), "masters": masters}, directory / STATE_NAME
        )
