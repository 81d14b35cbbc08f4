"""The model that an engine trains, as its spec says: adapters, dropout, gradient checkpointing."""

from __future__ import annotations

from typing import Any

from holdfast_worker.trainer.model_source import ModelSource
from holdfast_worker.wire_types import TrainerSpec


def open_trained(source: ModelSource, spec: TrainerSpec, *, device: str) -> Any:
    """The same on every rank. On the CPU, but for weights of 4 bits, which are made on `device`."""
    adapter = source.adapter
    options = quantized(spec.dtype, device) if adapter is not None and adapter.quantize else {}
    model = source.open_model(spec.dtype, dropout=spec.dropout, **options)
    if adapter is not None:
        model = adapter.add_to(model, spec.dtype)
    if spec.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def quantized(dtype: str, device: str) -> dict[str, Any]:
    """
    transformers' arguments for weights of 4 bits, as QLoRA has them: normal floats, scales
    quantized once more.
    """
    import torch
    from transformers import BitsAndBytesConfig

    config = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=getattr(torch, dtype),
    )
    return {"quantization_config": config, "device_map": {"": device}}
