"""
DeepSpeed ZeRO 0 to 3 on any number of ranks: gloo on CPU, NCCL on GPU. No launcher: the agent
starts ranks.
"""

from __future__ import annotations

import math
import os
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from holdfast_worker.gpu_memory import drop_garbage
from holdfast_worker.rank.rendezvous import join_group
from holdfast_worker.trainer.disk_room import trained_bytes
from holdfast_worker.trainer.engines.engine import change_settings
from holdfast_worker.trainer.engines.loss_scale import LossScale
from holdfast_worker.trainer.engines.optimizers import optimizer_of
from holdfast_worker.trainer.engines.universal import TAG, undo_sharing, universal
from holdfast_worker.trainer.model.model_source import ModelSource, saved_names
from holdfast_worker.trainer.model.opening import open_trained
from holdfast_worker.weights import Tensors
from holdfast_worker.wire.types import Optimizer, TrainerSpec

DeepSpeedConfig = dict[str, Any]  # Its fields are DeepSpeed's.

COLLECTIVE_TIMEOUT = timedelta(
    hours=2
)  # The engine's no-progress limit ends a hang; this is only the last resort.
BUCKET_GPU = 50_000_000
BUCKET_CPU_MIN, BUCKET_CPU_MAX = 100_000, 5_000_000


def prepare_environment(context: Any, device: str) -> None:
    """What DeepSpeed and torch.distributed read while they are imported and started."""
    local_rank = "0" if device == "cpu" else device.split(":")[1]
    os.environ.update(
        RANK=str(context.rank),
        LOCAL_RANK=local_rank,
        WORLD_SIZE=str(context.world_size),
        MASTER_ADDR=context.master_addr,
        MASTER_PORT=str(context.master_port),
    )
    os.environ["DS_ACCELERATOR"] = (
        "cpu" if device == "cpu" else "cuda"
    )  # Otherwise DeepSpeed would detect it itself.
    # Sums inside the switch have no fixed order.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")


def forget_zero_3() -> None:
    """
    Clears two places of 0.19.8 that outlive an engine and keep its module, and with it the
    optimizer's state, in memory forever: the stack of running modules, and a cache on a class that
    is keyed by the engine's parts.
    """
    from deepspeed.runtime.zero.parameter_offload import FWD_MODULE_STACK
    from deepspeed.runtime.zero.partitioned_param_coordinator import PartitionedParameterCoordinator

    FWD_MODULE_STACK.clear()
    cached = PartitionedParameterCoordinator._PartitionedParameterCoordinator__params_to_release
    for cell in cached.__closure__ or ():
        if hasattr(cell.cell_contents, "cache_clear"):
            cell.cell_contents.cache_clear()


class DeepSpeedEngine:
    """
    One rank of a ZeRO group. Norm, clip and the skip of a non-finite step are DeepSpeed's, except
    on stage 0.
    """

    def __init__(self, spec: TrainerSpec, *, context: Any, device: str) -> None:
        import deepspeed
        import torch.distributed as dist

        self.spec, self.device = spec, device
        self.rank, self.world_size, self.home = context.rank, context.world_size, context.home
        self.stage = spec.zero
        self.loss_scale = LossScale(spec.dtype)
        self.model: Any = None
        self.module: Any = None
        if (
            device == "cpu"
        ):  # Serves only inference, and would be compiled here by every rank at once.
            deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
            # DeepSpeed asks whether the CPU has float16 instructions; torch computes it without them.
            deepspeed.get_accelerator().is_fp16_supported = lambda: True
        backend = "gloo" if device == "cpu" else "nccl"
        join_group(context, backend=backend, timeout=COLLECTIVE_TIMEOUT)
        deepspeed.init_distributed(  # Uses the existing group.
            dist_backend=backend,
            auto_mpi_discovery=False,
            timeout=COLLECTIVE_TIMEOUT,
            verbose=False,
        )
        # Python objects go over gloo: NCCL would send them through the GPU.
        self.objects = (
            None
            if backend == "gloo"
            else dist.new_group(backend="gloo", timeout=COLLECTIVE_TIMEOUT)
        )

    def open(
        self, source: ModelSource, *, optimizer: Optimizer, state: Path | None, world_size: int
    ) -> None:
        import deepspeed

        # Without ZeRO every rank has all of the state: any number of ranks reads it.
        convert = state is not None and self.stage > 0 and world_size != self.world_size

        self._forget()  # Frees the old model before opening the new one.
        module = open_trained(source, self.spec, device=self.device)
        self.adapts = source.adapter is not None
        self.names = saved_names(module)
        self.clip = optimizer.clip_grad_norm
        stepper = optimizer_of(module, optimizer, fused=False, master=lambda parameter: parameter)
        decays = [group["weight_decay"] for group in stepper.param_groups]
        config = self._config(sum(parameter.numel() for parameter in module.parameters()))
        config["checkpoint"] = {"load_universal": convert}
        if self.stage == 3:
            self._partition(module, config)
        self.model = deepspeed.initialize(model=module, optimizer=stepper, config=config)[0]
        self.module = self.model.module
        if self.stage == 0 and self.spec.dtype != "float32":
            self._undo_first_step()
        if state is None:
            return
        with (
            universal(state, engine=self, home=self.home)
            if convert
            else nullcontext(state) as directory
        ):
            path, _ = self.model.load_checkpoint(
                str(directory), tag=TAG, load_module_strict=not self.adapts
            )
        if path is None:
            raise RuntimeError(
                f"Cannot load '{state}' because DeepSpeed found no checkpoint with tag '{TAG}' in it"
            )
        if convert:
            undo_sharing(self.model.optimizer.optimizer, decays=decays)
        self.change(
            optimizer
        )  # The current settings, including the clip, instead of those saved with the state.

    def change(self, optimizer: Optimizer) -> None:
        change_settings(self.model.optimizer.param_groups, optimizer)
        self.clip = optimizer.clip_grad_norm
        if self.stage > 0:
            self.model.optimizer.clip_grad = self.clip or 0.0

    def _forget(self) -> None:
        """
        Frees the old model: its hooks and cycles would keep it and its optimizer's state in memory
        next to the new one.
        """
        if self.model is not None:
            self.model.destroy()
            forget_zero_3()
        self.model = self.module = None
        drop_garbage(self.device)

    def _partition(self, module: Any, config: DeepSpeedConfig) -> None:
        """
        Parameter by parameter. DeepSpeed itself would first move the whole model to every rank's
        device.
        """
        import deepspeed

        deepspeed.zero.Init(
            module=module, config_dict_or_path=config, dtype=getattr(torch, self.spec.dtype)
        )
        for buffer in module.buffers():
            buffer.data = buffer.data.to(self.device)

    def _config(self, parameters: int) -> DeepSpeedConfig:
        """
        Buckets on CPU are small: the default of 5e8 faults in 2 GB per reduction. No communication
        overlaps with computation and nothing is reordered, so the same batch gives the same bits.
        """
        bucket = (
            BUCKET_GPU
            if self.device != "cpu"
            else min(max(parameters // 8, BUCKET_CPU_MIN), BUCKET_CPU_MAX)
        )
        return {
            "train_batch_size": self.world_size,
            "train_micro_batch_size_per_gpu": 1,
            "gradient_accumulation_steps": 1,
            "gradient_clipping": self.clip or 0.0 if self.stage > 0 else 0.0,
            # Sums in 16 bits lose bits over many micro-batches; stage 0 has no other type.
            "data_types": {
                "grad_accum_dtype": "fp32"
                if self.stage > 0 or self.spec.dtype == "float32"
                else None
            },
            "bf16": {"enabled": self.spec.dtype == "bfloat16"},
            # To DeepSpeed the scale is fixed: `backward` sets it.
            "fp16": {"enabled": self.spec.dtype == "float16", "loss_scale": 1.0},
            "zero_force_ds_cpu_optimizer": False,
            "zero_optimization": {
                "stage": self.stage,
                "reduce_bucket_size": bucket,
                "allgather_bucket_size": bucket,
                "stage3_prefetch_bucket_size": bucket,
                "overlap_comm": False,
                "contiguous_gradients": True,
                "round_robin_gradients": False,
                **self._offloaded(),
            },
            "steps_per_print": None,
            "wall_clock_breakdown": False,
        }

    def _offloaded(self) -> DeepSpeedConfig:
        """
        What is in host memory, pinned if there is a GPU to copy to. AdamW is torch's in that case,
        too.
        """
        offload = self.spec.offload
        place = {"device": "cpu", "pin_memory": self.device != "cpu"}
        return {
            **({"offload_optimizer": place} if offload.optimizer else {}),
            **({"offload_param": place} if offload.parameters else {}),
        }

    def _undo_first_step(self) -> None:
        """
        Stage 0 in 16 bits creates the optimizer's state by a step with zero gradients (0.19.8,
        fp16/unfused_optimizer.py): it decays the weights and leaves Adam's step count, hence its
        bias correction, one too high.
        """
        wrapper = self.model.optimizer
        wrapper.optimizer.state.clear()
        with torch.no_grad():
            for masters, weights in zip(wrapper.fp32_groups, wrapper.fp16_groups):
                torch._foreach_copy_(masters, weights)

    def backward(self, loss: Any, boundary: bool) -> None:
        if self.loss_scale.changes:
            self.model.optimizer.loss_scale = self.loss_scale.value
            # Without ZeRO its optimizer divides by the scale, and nothing multiplies (0.19.8).
            if self.stage == 0:
                loss = self.loss_scale.scaled(loss)
        self.model.set_gradient_accumulation_boundary(boundary)
        self.model.backward(loss, scale_wrt_gas=False)

    def step(self, lr: float) -> float | None:
        for group in self.model.optimizer.param_groups:
            group["lr"] = lr
        if self.stage == 0:
            return self._step_unsharded()
        # If the norm is not finite, no rank steps and the gradients are dropped.
        self.model.step()
        if self.model.was_step_applied():
            return float(self.model.get_global_grad_norm())
        if self.stage < 3 and self.spec.offload.optimizer:
            # In 16 bits it keeps the gradients, and would add the next ones to them (0.19.8).
            gradients = self.model.optimizer.averaged_gradients
            gradients.update(dict.fromkeys(gradients))
        return None

    def _step_unsharded(self) -> float | None:
        """
        Without ZeRO, DeepSpeed reports no norm in float32, and one of bfloat16 precision (off by 1
        %) in bfloat16. Gradients are already averaged here.
        """
        parameters = [
            parameter for parameter in self.module.parameters() if parameter.grad is not None
        ]
        norm = torch.nn.utils.get_total_norm([parameter.grad.float() for parameter in parameters])
        norm /= self.loss_scale.value
        grad_norm = norm.item()
        if not math.isfinite(grad_norm):
            for parameter in parameters:
                parameter.grad = None
            return None
        if self.clip is not None and grad_norm > self.clip:
            torch.nn.utils.clip_grads_with_norm_(parameters, self.clip, norm)
        self.model.step()
        return grad_norm

    def gather(self, value: Any) -> list[Any]:
        import torch.distributed as dist

        values: list[Any] = [None] * self.world_size
        dist.all_gather_object(values, value, group=self.objects)
        return values

    def full_weights(self, names: list[str] | None = None) -> Tensors:
        names = names or self.names
        if self.stage < 3:
            tensors = self.module.state_dict()
            return {name: tensors[name].detach().cpu() for name in names} if self.rank == 0 else {}
        return self._gather_partitioned(names)

    def _gather_partitioned(self, names: list[str]) -> Tensors:
        """Parameter by parameter, so that at most one is gathered on a device at a time."""
        import deepspeed

        found: dict[str, torch.Tensor] = {}
        tensors = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
        with self._checkpoint_event():
            for name in names:
                tensor = tensors[name]
                with deepspeed.zero.GatheredParameters(
                    [tensor] if hasattr(tensor, "ds_id") else [], modifier_rank=None
                ):
                    if self.rank == 0:
                        found[name] = tensor.detach().cpu().clone()
        return found

    @contextmanager
    def _checkpoint_event(self) -> Generator[None]:
        """Without it: `Cannot partition a param in flight`."""
        self.model.optimizer.checkpoint_event_prologue()
        yield
        self.model.optimizer.checkpoint_event_epilogue()

    def _trained(self) -> dict[str, Any]:
        return {name: p for name, p in self.module.named_parameters() if p.requires_grad}

    def trained_parts(self) -> Tensors:
        if self.stage < 3:
            parameters = self._trained() if self.rank == 0 else {}
            return {name: parameter.detach() for name, parameter in parameters.items()}
        return {name: p.ds_tensor.detach() for name, p in self._trained().items()}

    def whole(self, name: str, part: Any) -> Any:
        import torch.distributed as dist

        if self.stage < 3:
            return part
        parts = [torch.empty_like(part) for _ in range(self.world_size)] if self.rank == 0 else None
        dist.gather(part, parts, dst=0, group=self.objects)
        if parts is None:
            return None
        parameter = self._trained()[name]
        return torch.cat(parts)[: parameter.ds_numel].view(parameter.ds_shape)

    def part_of(self, name: str, whole: Any) -> Any:
        if self.stage < 3:
            return whole
        size = self._trained()[name].ds_tensor.numel()
        part = whole.flatten()[self.rank * size : (self.rank + 1) * size]
        # As DeepSpeed pads the last.
        return torch.nn.functional.pad(part, (0, size - part.numel()))

    def state_bytes(self) -> int:
        """
        Float32 weights and two moments each, sharded over the ranks by ZeRO, and rank 0's copy of
        the model. Too much before the first step, which creates the moments.
        """
        trained = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        parameters = sum(getattr(parameter, "ds_numel", parameter.numel()) for parameter in trained)
        whole = trained_bytes(self.module) if self.rank == 0 else 0
        if self.stage > 0:
            return 12 * parameters // self.world_size + (whole if self.stage < 3 else 0)
        has_masters = self.spec.dtype != "float32"
        return (12 if has_masters else 8) * parameters + whole if self.rank == 0 else 0

    def save_state(self, directory: Path) -> None:
        # Frozen weights are in the base model's directory.
        self.model.save_checkpoint(
            str(directory), tag=TAG, save_latest=False, exclude_frozen_parameters=self.adapts
        )
        if self.rank == 0:
            for script in directory.glob(
                "zero_to_*.py"
            ):  # Not state: hf/ next to it already has the complete weights.
                script.unlink()
