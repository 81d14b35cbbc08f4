"""
The model that an engine trains, according to its spec: adapters, dropout, gradient checkpointing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast_worker.trainer.model.model_source import ModelSource
from holdfast_worker.wire.types import TrainerSpec


def open_trained(source: ModelSource, spec: TrainerSpec, *, device: str) -> Any:
    """
    The same on every rank. On the CPU, except for 4-bit weights, which are created on `device`.
    """
    adapter = source.adapter
    quantizes = adapter is not None and adapter.quantize
    options: Mapping[str, Any] = quantized(spec.dtype, device) if quantizes else {}
    model = source.open_model(spec.dtype, dropout=spec.dropout, **options)
    if adapter is not None:
        model = adapter.add_to(model, spec.dtype)
    if spec.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def quantized(dtype: str, device: str) -> Mapping[str, Any]:
    """
    transformers' arguments for weights of 4 bits, as in QLoRA: normal floats, with scales that are
    quantized again.
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
