"""
Low-rank adapters (LoRA, by PEFT) for frozen weights: how they are created, merged, identified and
written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from holdfast_worker import weights
from holdfast_worker.model_opening import Opening
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.model.model_source import ModelSource
from holdfast_worker.weights import AdapterBase, Tensors
from holdfast_worker.wire.types import Lora

PEFT_NAME = "default"  # The name of the only adapter in the model; files omit it.
PREFIX = "base_model.model."  # What PEFT puts before the names of the model that it wraps.
OF_MODEL = {
    "config.json",
    "generation_config.json",
}  # Files of a model directory that an adapter's directory lacks.


def adapted_source(
    lora: Lora,
    *,
    seed: int,
    path: Path,
    saved: Path | None,
    engine: Any,
    opening: Opening,
) -> ModelSource:
    """
    The base model in `path` with the adapter that a checkpoint holds in `saved`, or a new one. On
    every rank; the base must be bit-identical to the one that the checkpoint was trained on.
    """
    source = ModelSource(path, opening=opening)
    digest = engine.gather(weights.digest_of_directory(path) if engine.rank == 0 else "")[0]
    recorded = (
        digest if saved is None else json.loads((saved / weights.BASE_NAME).read_text())["digest"]
    )
    if recorded != digest:
        raise BadDataError(
            f"Cannot load adapter '{saved}' "
            f"because it was trained on a model with digest {recorded}: the digest of '{path}' "
            f"is {digest}. Restore the model that the run started from"
        )
    source.adapter = Adapter(lora, seed=seed, base=path.resolve(), base_digest=digest, saved=saved)
    return source


class Adapter:
    """
    `lora`: rank, alpha, dropout, targets, quantize. `saved`: the PEFT directory to start from;
    None: a new adapter.
    """

    def __init__(
        self,
        lora: Lora,
        *,
        seed: int,
        base: Path,
        base_digest: str,
        saved: Path | None = None,
    ) -> None:
        self.lora = lora
        self.seed = seed
        self.base = base
        self.base_digest = base_digest
        self.saved = saved
        self.quantize: str | None = lora.quantize

    def add_to(self, model: Any, dtype: str) -> Any:
        """
        `model` wrapped by PEFT, its own weights frozen. One half of each adapter starts as zero,
        the other is derived from the seed: the same bits on every rank and at every load.
        """
        import torch
        from peft import LoraConfig, get_peft_model

        lora = self.lora
        targets = "all-linear" if lora.targets == "all_linear" else list(lora.targets)
        config = LoraConfig(
            r=lora.rank,
            lora_alpha=cast("int", lora.alpha),  # PEFT takes any number.
            lora_dropout=lora.dropout,
            target_modules=targets,
            bias="none",
            task_type="CAUSAL_LM",
            base_model_name_or_path=str(self.base),
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            try:
                adapted = get_peft_model(model, config, autocast_adapter_dtype=False)
            except ValueError as error:
                raise BadDataError(
                    f"Cannot add adapters to '{self.base}': {error}. Change trainer.lora.targets"
                ) from error
        self._check_targets(adapted)
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.to(getattr(torch, dtype)).contiguous()
        if self.saved is not None:
            self._load(adapted, self.saved)
        adapted.base_path = str(self.base)
        return adapted

    def _check_targets(self, adapted: Any) -> None:
        ends = {id(adapted.get_output_embeddings()), id(adapted.get_input_embeddings())}
        for name, layer in adapted.named_modules():
            if id(layer) in ends and hasattr(layer, "get_base_layer"):
                raise BadDataError(
                    f"Cannot add an adapter to '{name}' "
                    "because it is the embedding or the output head, which may be one "
                    "tensor: name linear layers in trainer.lora.targets, or all_linear"
                )

    def _load(self, adapted: Any, directory: Path) -> None:
        import torch
        from safetensors.torch import load_file

        saved = load_file(directory / weights.ADAPTER_NAME)
        trained = {_file_name(name): p for name, p in adapted.named_parameters() if p.requires_grad}
        if saved.keys() != trained.keys():
            odd = min(saved.keys() ^ trained.keys())
            raise BadDataError(
                f"Cannot load adapter '{directory}' because only one of it and trainer.lora has '{odd}'"
            )
        with torch.no_grad():
            for name, parameter in trained.items():
                parameter.copy_(saved[name])

    def names(self, adapted: Any) -> list[str]:
        """The names of the adapter's tensors in the wrapped model."""
        return [name for name, _ in adapted.named_parameters() if ".lora_" in name]

    def tensors(self, found: Tensors) -> Tensors:
        """
        The adapter's tensors among `found`: `found` has the names in the wrapped model, the result
        those in the adapter's file.
        """
        return {
            _file_name(name): tensor.contiguous()
            for name, tensor in found.items()
            if ".lora_" in name
        }

    def digest(self, tensors: Tensors) -> str:
        """
        The policy's digest, regardless of its written form: over the base's digest, then the
        adapter's tensors.
        """
        prefix = weights.adapter_prefix(self._identity(), self.lora.alpha)
        return weights.manifest_of_tensors(tensors, prefix=prefix)[1]

    def _identity(self) -> AdapterBase:
        return {"path": str(self.base), "digest": self.base_digest, "quantize": self.quantize}

    def merged(self, adapted: Any, found: Tensors, dtype: str) -> Tensors:
        """
        The model's own tensors with the adapter in them, computed in float32 and then cast.
        `found`: all complete tensors of the wrapped model. The base itself is not touched.
        """
        import torch

        target = getattr(torch, dtype)
        whole = {name: tensor for name, tensor in found.items() if ".lora_" not in name}
        for name, layer in _layers(adapted).items():
            weight = f"{name}.base_layer.weight"
            base = self._float32(layer, whole.pop(weight))
            a, b = (found[f"{name}.lora_{half}.{PEFT_NAME}.weight"].float() for half in "AB")
            product = b @ a * (self.lora.alpha / self.lora.rank)
            added = base + (product.T if layer.fan_in_fan_out else product)
            whole[weight] = added.to(target)
        plain = {
            name.removeprefix(PREFIX).replace(".base_layer.", "."): tensor
            for name, tensor in whole.items()
        }
        return {name: tensor for name, tensor in plain.items() if not _of_quantization(name)}

    def _float32(self, layer: Any, weight: Any) -> Any:
        if self.quantize is None:
            return weight.float()
        import bitsandbytes

        packed = layer.get_base_layer().weight  # Complete: ZeRO does not shard it.
        return (
            bitsandbytes.functional.dequantize_4bit(packed.data, packed.quant_state).float().cpu()
        )

    def write(
        self, directory: Path, *, adapted: Any, tensors: Tensors, files: dict[str, bytes]
    ) -> None:
        """Writes a PEFT directory with the tokenizer. `tensors`: named as in its file."""
        from safetensors.torch import save_file

        directory.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            if name not in OF_MODEL:
                (directory / name).write_bytes(data)
        config = {**adapted.peft_config[PEFT_NAME].to_dict(), "inference_mode": True}
        sorted_config = {
            name: sorted(value) if isinstance(value, set) else value
            for name, value in config.items()
        }
        _write_json(directory / weights.ADAPTER_CONFIG_NAME, sorted_config)
        _write_json(directory / weights.BASE_NAME, self._identity())
        save_file(
            dict(sorted(tensors.items())),
            directory / weights.ADAPTER_NAME,
            metadata={"format": "pt"},
        )


def _layers(adapted: Any) -> Mapping[str, Any]:
    """The layers that have an adapter, by name."""
    return {
        name: layer
        for name, layer in adapted.named_modules()
        if len(getattr(layer, "lora_A", ())) > 0
    }


def _file_name(name: str) -> str:
    return name.replace(f".{PEFT_NAME}.", ".")


def _of_quantization(name: str) -> bool:
    """Whether a name is of the scales or tables of a 4-bit weight."""
    return ".weight." in name


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True, default=str) + "\n")
