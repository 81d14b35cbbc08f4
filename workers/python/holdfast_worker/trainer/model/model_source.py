"""
A model directory as the trainer opens it and writes it: the same files with different weights.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from holdfast_worker import weights
from holdfast_worker.model_hub.cache import model_directory
from holdfast_worker.model_opening import PLAIN, Opening
from holdfast_worker.operation import BadDataError
from holdfast_worker.weights import Tensors

SHARD_BYTES_MAX = "5GB"
COPIED_BYTES_MAX = (
    256 << 20
)  # Maximum size of a file that does not contain weights; the largest tokenizers have about 35 MB.
WEIGHT_SUFFIXES = {
    ".safetensors",
    ".bin",
    ".pt",
    ".pth",
    ".h5",
    ".msgpack",
    ".gguf",
    ".onnx",
    ".lock",
}


class ModelSource:
    """
    Everything of a model directory except its weights, kept in memory so that a publication reads
    nothing. `path`: a directory, or a model of the hub with its commit. `head`: what replaces the
    vocabulary (`heads.py`), whether or not the directory has it; None: a language model.
    """

    def __init__(
        self, path: str | Path, *, head: str | None = None, opening: Opening = PLAIN
    ) -> None:
        self.path = model_directory(path)
        self.head = head
        self.opening = opening
        self.config = weights.check_model_directory(self.path)
        self.adapter: Any = None  # `adapter.Adapter`: what is trained instead of the weights.
        self.files: dict[str, bytes] = {}
        for file in sorted(self.path.iterdir()):
            if file.is_file() and not _is_weights(file) and file.stat().st_size <= COPIED_BYTES_MAX:
                self.files[file.name] = file.read_bytes()
        self._tokenizer: Any = None
        if head == "score":  # Its config.json depends on it.
            self._opened(lambda: self.tokenizer)

    @property
    def tokenizer(self) -> Any:
        """Loaded when first needed: training on trajectories never needs one."""
        if self._tokenizer is None:
            from transformers import AutoTokenizer

            self._tokenizer = AutoTokenizer.from_pretrained(self.path, **self.opening.reading())
        return self._tokenizer

    def open_model(self, dtype: str, *, dropout: float = 0.0, **options: Any) -> Any:
        """
        The model with its weights in `dtype`, in training mode, every dropout as given. Every
        parameter is copied once: those of a memory-mapped file are at odd addresses, and the start
        of a vector loop can change the last bit of a product. `options` go to transformers.
        """
        import torch
        from transformers import AutoConfig

        from holdfast_worker.trainer.model.heads import open_with_head

        config = self._opened(
            lambda: AutoConfig.from_pretrained(self.path, **self.opening.reading())
        )
        set_dropout(config, dropout)
        # A mixture's grouped kernels count with histc, which has no deterministic version on CUDA.
        config._experts_implementation = "eager"
        options = {
            "config": config,
            "dtype": getattr(torch, dtype),
            **options,
        }
        head = self.head
        model = self._opened(
            lambda: (
                self.opening.language_model(self.path, **options)
                if head is None
                else open_with_head(self.path, head, opening=self.opening, **options)
            )
        )
        with torch.no_grad():
            for parameter in filter(torch.is_floating_point, model.parameters()):
                parameter.data = parameter.data.clone(memory_format=torch.contiguous_format)
        return model.train()

    def _opened(self, opened: Callable[[], Any]) -> Any:
        """
        A problem of the model is one of the data. ImportError: of kernels that are missing. A module
        that is not there is a problem of the environment.
        """
        try:
            return opened()
        except ModuleNotFoundError:
            raise
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise BadDataError(f"Cannot open model '{self.path}': {error}") from error

    def write(self, directory: Path, *, model: Any, tensors: Tensors, dtype: str) -> None:
        """
        Writes a plain Hugging Face directory. `tensors`: as `saved_names` names them, on the CPU.
        """
        from safetensors.torch import save_file

        directory.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            (directory / name).write_bytes(
                self._config(data, model, dtype) if name == "config.json" else data
            )
        tensors = to_file_names(model, tensors)
        shards, index = split_shards(tensors)
        for name, members in shards.items():
            save_file(
                {member: tensors[member] for member in members},
                directory / name,
                metadata={"format": "pt"},
            )
        if index is not None:
            (directory / weights.INDEX_NAME).write_text(
                json.dumps(index, indent=2, sort_keys=True) + "\n"
            )

    def _config(self, data: bytes, model: Any, dtype: str) -> bytes:
        from holdfast_worker.trainer.model.heads import config_with_head

        config = json.loads(data)
        config.pop("torch_dtype", None)
        config["dtype"] = dtype
        if self.head is not None:
            config = config_with_head(config, self.head, model=model, tokenizer=self._tokenizer)
        return (json.dumps(config, indent=2, sort_keys=True) + "\n").encode()


def _is_weights(file: Path) -> bool:
    return file.suffix in WEIGHT_SUFFIXES or file.name.endswith(".index.json")


def set_dropout(config: Any, probability: float) -> None:
    """
    Sets every dropout of a model's configuration. 0 except in supervised training:
    log-probabilities must not be random.
    """
    for part in (config, getattr(config, "text_config", None)):
        for name, value in list(vars(part).items()) if part is not None else []:
            if ("dropout" in name or name.endswith("pdrop")) and isinstance(value, float):
                setattr(part, name, probability)


def saved_names(model: Any) -> list[str]:
    """
    The tensors of a model that a file contains: parameters, each shared one once under its first
    name (no second copy of a tied output head), then the buffers that belong to the state.
    """
    unsaved = set(getattr(model, "_keys_to_ignore_on_save", None) or ())
    parameters = [name for name, _ in model.named_parameters()]
    every_parameter = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    buffers = [name for name in model.state_dict() if name not in every_parameter]
    return [name for name in (*parameters, *buffers) if name not in unsaved]


def to_file_names(model: Any, tensors: Tensors) -> Tensors:
    """
    Undoes the renaming and fusing that transformers 5 does on load for some architectures
    (experts).
    """
    try:
        from transformers.core_model_loading import revert_weight_conversion
    except ImportError:  # transformers 4: names in memory are names in files.
        return tensors
    return {
        name: tensor.contiguous()
        for name, tensor in revert_weight_conversion(model, tensors).items()
    }


class ShardIndex(TypedDict):
    """`weight_map`: the file of each tensor."""

    metadata: Mapping[str, object]
    weight_map: dict[str, str]


def split_shards(tensors: Tensors) -> tuple[dict[str, list[str]], ShardIndex | None]:
    """File name -> tensor names, and the index if there are several files."""
    from huggingface_hub import split_torch_state_dict_into_shards

    split = split_torch_state_dict_into_shards(
        tensors, filename_pattern="model{suffix}.safetensors", max_shard_size=SHARD_BYTES_MAX
    )
    if not split.is_sharded:
        return split.filename_to_tensors, None
    return split.filename_to_tensors, {
        "metadata": split.metadata,
        "weight_map": split.tensor_to_filename,
    }
