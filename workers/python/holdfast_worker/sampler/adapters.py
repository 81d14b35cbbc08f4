"""
Publications that are adapters: the base model is opened once, and only the adapter is replaced.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from holdfast_worker import weights
from holdfast_worker.operation import BadDataError
from holdfast_worker.weights import Tensors
from holdfast_worker.wire.types import PublicationBase

PEFT_NAME = (
    ".default"  # What PEFT puts into the names of the one adapter in a model; files leave it out.
)
NOISE_STD = 0.02
# What vLLM takes as max_lora_rank.
VLLM_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


def check_base(base: PublicationBase) -> None:
    """An adapter is meaningful only with the model that it was trained with."""
    found = weights.digest_of_directory(base.dir)
    if found != base.digest:
        raise BadDataError(
            f"Cannot serve an adapter beside '{base.dir}' "
            f"because that model's digest is {found}: it was trained beside "
            f"one with {base.digest}. Restore the model that the run started from"
        )


def with_adapter(model: Any, directory: str, *, noise: Any = None) -> Any:
    """`model` as PEFT wraps it, with an adapter of the shape of the one in `directory`.
    `noise(tensor)` fills it, so that a tensor missing from a publication is noticed; None: the
    directory's tensors fill it.
    """
    try:
        from peft import LoraConfig, PeftModel, get_peft_model
    except ImportError as error:
        raise BadDataError(
            "Cannot serve an adapter "
            f"because the sampler's environment has no peft ({error}): pip install peft there, or "
            "set trainer.lora.publish: merged"
        ) from error
    if noise is None:
        return (
            PeftModel.from_pretrained(model, directory, autocast_adapter_dtype=False)
            .to(model.dtype)
            .eval()
        )
    adapted = get_peft_model(
        model, LoraConfig.from_pretrained(directory), autocast_adapter_dtype=False
    )
    for tensor in tensors_by_file_name(adapted).values():
        noise(tensor)
    return adapted.to(model.dtype).eval()


def tensors_by_file_name(adapted: Any) -> Tensors:
    """The adapter's own tensors, by the names that they have in a PEFT directory."""
    state = adapted.state_dict(keep_vars=True)
    return {
        name.replace(PEFT_NAME, ""): tensor for name, tensor in state.items() if ".lora_" in name
    }


def write_noise(directory: str, target: str, seed: int) -> None:
    """A PEFT directory like the one in `directory`, with noise for its tensors."""
    import torch
    from safetensors.torch import load_file, save_file

    generator = torch.Generator().manual_seed(seed)
    tensors = {
        name: (torch.randn(tensor.shape, generator=generator) * NOISE_STD).to(tensor.dtype)
        for name, tensor in sorted(load_file(Path(directory) / weights.ADAPTER_NAME).items())
    }
    save_file(tensors, Path(target) / weights.ADAPTER_NAME)
    shutil.copy(Path(directory) / weights.ADAPTER_CONFIG_NAME, target)


def vllm_rank(directory: str) -> int:
    """The smallest rank that vLLM offers and that fits the adapter in `directory`."""
    rank = int(json.loads((Path(directory) / weights.ADAPTER_CONFIG_NAME).read_text())["r"])
    fitting = [offered for offered in VLLM_RANKS if offered >= rank]
    if not fitting:
        raise BadDataError(
            f"Cannot serve an adapter of rank {rank} with vLLM, which takes at most {VLLM_RANKS[-1]}: set "
            "trainer.lora.publish: merged"
        )
    return fitting[0]
