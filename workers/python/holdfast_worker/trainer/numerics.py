"""
What can change the bits of an optimizer step: set once at boot and reported to the engine, which
records it.
"""

from __future__ import annotations

import hashlib
import os
import random
from importlib import metadata

from holdfast_worker.wire.answers import Numerics, NumericsLora
from holdfast_worker.wire.types import Lora, TrainerSpec

# bitsandbytes among them: an optimizer of it may come with any load.
PACKAGES = ("torch", "transformers", "safetensors", "numpy", "bitsandbytes", "deepspeed")
ADAPTER_PACKAGES = ("peft",)  # Computes only if adapters are trained.


def choose_device(wanted: str, rank: int) -> str:
    """`cpu` or `cuda:N`. auto: a GPU if there is one."""
    import torch

    if wanted not in ("auto", "cpu", "cuda"):
        raise ValueError(
            f"Cannot choose a device because trainer.device is '{wanted}': use auto, cpu or cuda"
        )
    if wanted == "cuda" and not torch.cuda.is_available():
        raise RuntimeError(
            f"Cannot use trainer.device cuda because torch {torch.__version__} sees no GPU: "
            "set trainer.device to cpu, or install a CUDA build of torch"
        )
    if wanted == "cpu" or not torch.cuda.is_available():
        return "cpu"
    count = torch.cuda.device_count()
    if rank >= count:
        raise RuntimeError(
            f"Cannot place rank {rank} of the trainer "
            f"because this process sees {count} GPU(s) and each rank needs its own: "
            "lower trainer.ranks, name more trainer.devices, or set trainer.device to cpu"
        )
    return f"cuda:{rank}"


def has_dropout(spec: TrainerSpec) -> bool:
    """Whether training uses randomness."""
    return spec.dropout > 0 or (spec.lora is not None and spec.lora.dropout > 0)


def step_seed(seed: int, *, number: int, rank: int) -> int:
    """
    The seed of the dropout of one step on one rank: a redo of the step draws the same mask, and no
    two steps or ranks draw alike.
    """
    text = f"dropout {seed} {number} {rank}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def check_adapter(spec: TrainerSpec) -> None:
    """Raises if the configured adapters cannot be trained in this environment or this group."""
    lora = spec.lora
    if lora is None:
        return
    if spec.head is not None:
        raise ValueError(
            f"Cannot start a trainer with trainer.lora because its model has a {spec.head} head: train it whole"
        )
    needed = {
        "peft": "trainer.lora",
        **({"bitsandbytes": "trainer.lora.quantize"} if lora.quantize else {}),
    }
    for package, setting in needed.items():
        if not _installed((package,)):
            raise ValueError(
                f"Cannot start a trainer with {setting} because its environment has no {package}: "
                f"pip install {package} there, or leave {setting} out"
            )


def prepare_environment(threads: int) -> None:
    """Variables that must be set before torch starts its thread pools and CUDA its handles."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ["MKL_NUM_THREADS"] = str(threads)
    os.environ["MKL_DYNAMIC"] = "FALSE"
    os.environ["OMP_DYNAMIC"] = "FALSE"
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def make_deterministic(device: str, *, threads: int, seed: int) -> None:
    """
    Fixed threads, deterministic kernels, fixed seeds. If torch has no such kernel, the operation
    raises.
    """
    import numpy
    import torch

    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = (
        False  # Costs a fill of every torch.empty, and proves nothing.
    )
    if device != "cpu":
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = False
        torch.backends.cuda.enable_mem_efficient_sdp(False)  # Its backward has no fixed order.
        torch.backends.cuda.matmul.allow_tf32 = False
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def package_versions() -> dict[str, str]:
    """Installed versions of the packages that compute."""
    return _installed(PACKAGES)


def _installed(names: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def device_kind(device: str) -> str:
    """
    The part of the device that decides which kernels run: `cpu` with its vector width, or the GPU's
    name.
    """
    import torch

    if device == "cpu":
        return f"cpu {torch.backends.cpu.get_cpu_capability()}"
    return torch.cuda.get_device_name(device)


def describe(spec: TrainerSpec, *, device: str, world_size: int) -> Numerics:
    """The `Numerics` record. The micro-batch cut comes with each `train`; until then it is 0."""
    deepspeed = spec.engine == "deepspeed"
    packages = package_versions()
    if not deepspeed:
        packages.pop("deepspeed", None)
    packages |= _installed(ADAPTER_PACKAGES if spec.lora else ())
    return {
        "engine": spec.engine,
        "zero": spec.zero if deepspeed else 0,
        "world_size": world_size,
        "dtype": spec.dtype,
        "threads": spec.threads,
        "device": device_kind(device),
        "packages": packages,
        "micro_batch_tokens_max": 0,
        "logits_chunk_tokens": spec.logits_chunk_tokens,
        "packing": spec.packing,
        "dropout": spec.dropout,
        "offload": {"optimizer": spec.offload.optimizer, "parameters": spec.offload.parameters},
        "lora": _shape_of(spec.lora, spec.seed) if spec.lora else None,
        "attn_implementation": spec.attn_implementation,
        "trust_remote_code": spec.trust_remote_code,
        "open_with_missing": spec.open_with_missing,
    }


def _shape_of(lora: Lora, seed: int) -> NumericsLora:
    """What decides an adapter's bits: `publish` only says how it is written."""
    return {
        "rank": lora.rank,
        "alpha": lora.alpha,
        "dropout": lora.dropout,
        "targets": lora.targets,
        "quantize": lora.quantize,
        "seed": seed,
    }
