"""
Weights on disk: tensors, manifests and digests of a plain Hugging Face directory, read without
torch.

The digest is the one of the command line's contract: sha256 over the tensors sorted by name, of
each: name, NUL, safetensors dtype, NUL, shape as JSON without spaces (`[2,3]`), NUL, little-endian
bytes. Nothing else enters it, so equal weights have equal digests, however they are split into
files.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from holdfast_worker import removal
from holdfast_worker.operation import BadDataError
from holdfast_worker.wire.answers import FileEntry, TensorEntry

if TYPE_CHECKING:
    from torch import Tensor

    from holdfast_worker.wire import types

Tensors: TypeAlias = "dict[str, Tensor]"  # By their names in a model or in its file.
ModelConfig = Mapping[str, Any]  # A config.json, whose fields are Hugging Face's and the model's.


class HeaderEntry(TypedDict):
    """A tensor as a safetensors file names it. `data_offsets`: from the first tensor byte."""

    dtype: str
    shape: list[int]
    data_offsets: list[int]


class AdapterBase(TypedDict):
    """The model that an adapter stands beside."""

    path: str
    digest: str
    quantize: str | None


INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
ADAPTER_NAME, ADAPTER_CONFIG_NAME = (
    "adapter_model.safetensors",
    "adapter_config.json",
)  # File name in a PEFT directory.
# Ours, next to an adapter: path and digest of the model that it was trained on.
BASE_NAME = "base_model.json"
CHUNK_BYTES = 1 << 24
OLD = r"\..+\.\d+\.old"  # A directory that a new one has replaced.
HEADER_BYTES_MAX = 100_000_000  # The limit of the safetensors format itself.


@dataclass(frozen=True)
class TensorLocation:
    """One tensor inside a safetensors file. `dtype` is the file's spelling (F32, BF16, ...)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: Path
    begin: int  # byte offset in the file
    end: int


def tensor_prefix(name: str, dtype: str, shape: Iterable[int]) -> bytes:
    """What precedes a tensor's bytes in the digest."""
    shape_json = json.dumps(list(shape), separators=(",", ":"))
    return f"{name}\0{dtype}\0{shape_json}\0".encode()


def read_header(path: Path) -> tuple[dict[str, HeaderEntry], int]:
    """
    The header of a safetensors file (without `__metadata__`) and the offset of its first tensor
    byte.
    """
    with open(path, "rb") as file:
        head = file.read(8)
        size = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        if not 0 < size <= HEADER_BYTES_MAX:
            raise BadDataError(
                f"Cannot read weights as '{path}' is not a safetensors file: write it again"
            )
        try:
            header = json.loads(file.read(size))
        except ValueError as error:
            raise BadDataError(
                f"Cannot read weights because the header of '{path}' is broken: {error}"
            ) from error
    header.pop("__metadata__", None)
    return header, 8 + size


def weight_files(directory: str | Path) -> list[Path]:
    """The safetensors files of a model directory, by its index if it has one."""
    directory = Path(directory)
    index = directory / INDEX_NAME
    if index.is_file():
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        missing = [name for name in names if not (directory / name).is_file()]
        if missing:
            raise BadDataError(
                f"Cannot read model '{directory}' as '{INDEX_NAME}' names files that are not "
                f"there: {missing}"
            )
        return [directory / name for name in names]
    for name in (SINGLE_NAME, ADAPTER_NAME):
        if (directory / name).is_file():
            return [directory / name]
    raise BadDataError(
        f"Cannot read model '{directory}' because it has no '{SINGLE_NAME}' and no '{INDEX_NAME}': "
        "save it with save_pretrained(dir, safe_serialization=True)"
    )


def locate_tensors(directory: str | Path) -> list[TensorLocation]:
    """All tensors of a model directory, sorted by name."""
    found: dict[str, TensorLocation] = {}
    for path in weight_files(directory):
        header, base = read_header(path)
        length = path.stat().st_size
        for name, entry in header.items():
            begin, end = (base + offset for offset in entry["data_offsets"])
            if end > length:
                raise BadDataError(
                    f"Cannot read tensor '{name}' as '{path}' is cut short: {length} bytes of {end}"
                )
            if name in found:
                raise BadDataError(
                    f"Cannot read model '{directory}' because tensor '{name}' is there twice"
                )
            found[name] = TensorLocation(
                name, entry["dtype"], tuple(entry["shape"]), path, begin, end
            )
    return [found[name] for name in sorted(found)]


def tensor_chunks(location: TensorLocation) -> Iterator[bytes]:
    """A tensor's little-endian bytes, piece by piece."""
    with open(location.file, "rb") as file:
        file.seek(location.begin)
        remaining = location.end - location.begin
        while remaining > 0:
            chunk = file.read(min(remaining, CHUNK_BYTES))
            if not chunk:
                raise BadDataError(
                    f"Cannot read tensor '{location.name}' as '{location.file}' is cut short"
                )
            remaining -= len(chunk)
            yield chunk


def manifest_of_directory(directory: str | Path) -> tuple[list[TensorEntry], str]:
    """
    (tensors, digest): every tensor's {name, dtype, shape, sha256}, and the digest, from one
    reading.
    """
    tensors: list[TensorEntry] = []
    digest = hashlib.sha256(_prefix_of_directory(Path(directory)))
    for location in locate_tensors(directory):
        digest.update(tensor_prefix(location.name, location.dtype, location.shape))
        one = hashlib.sha256()
        for chunk in tensor_chunks(location):
            digest.update(chunk)
            one.update(chunk)
        tensors.append(
            {
                "name": location.name,
                "dtype": location.dtype,
                "shape": list(location.shape),
                "sha256": one.hexdigest(),
            }
        )
    return tensors, digest.hexdigest()


def adapter_prefix(base: AdapterBase, alpha: float) -> bytes:
    """
    What precedes an adapter's tensors in its digest: the base model that they belong to, and their
    scale.
    """
    return f"adapter\0{base['digest']}\0{base['quantize'] or ''}\0{float(alpha)!r}\0".encode()


def _prefix_of_directory(directory: Path) -> bytes:
    if not (directory / BASE_NAME).is_file():
        return b""
    config = json.loads((directory / ADAPTER_CONFIG_NAME).read_text())
    return adapter_prefix(json.loads((directory / BASE_NAME).read_text()), config["lora_alpha"])


def digest_of_directory(directory: str | Path) -> str:
    """The digest of a model's weights, or of an adapter's."""
    return manifest_of_directory(directory)[1]


SAFETENSORS_DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}


def tensor_dtype(tensor: Any) -> str:
    """A torch tensor's dtype in the safetensors spelling."""
    return SAFETENSORS_DTYPES[str(tensor.dtype).removeprefix("torch.")]


def tensor_bytes(tensor: Any) -> memoryview:
    """A torch tensor's bytes in row order, little-endian (as every platform we run on)."""
    import torch

    flat = tensor.detach().to("cpu").contiguous().reshape(-1)
    return memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else memoryview(b"")


def manifest_of_tensors(tensors: Tensors, *, prefix: bytes = b"") -> tuple[list[TensorEntry], str]:
    """Like `manifest_of_directory`, for torch tensors in memory by name."""
    entries: list[TensorEntry] = []
    digest = hashlib.sha256(prefix)
    for name in sorted(tensors):
        tensor = tensors[name]
        shape, dtype, data = list(tensor.shape), tensor_dtype(tensor), tensor_bytes(tensor)
        digest.update(tensor_prefix(name, dtype, shape))
        digest.update(data)
        entries.append(
            {
                "name": name,
                "dtype": dtype,
                "shape": shape,
                "sha256": hashlib.sha256(data).hexdigest(),
            }
        )
    return entries, digest.hexdigest()


def file_entry(root: str | Path, path: str | Path) -> FileEntry:
    """{path relative to `root`, sha256, bytes} of one file."""
    hasher, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            hasher.update(chunk)
            size += len(chunk)
    return {
        "path": Path(path).relative_to(root).as_posix(),
        "sha256": hasher.hexdigest(),
        "bytes": size,
    }


def list_files(root: str | Path) -> list[Path]:
    """All regular files under `root`, sorted by relative path."""
    return sorted(path for path in Path(root).rglob("*") if path.is_file())


def files_of_directory(root: str | Path) -> list[FileEntry]:
    """A file entry for every file under `root`."""
    return [file_entry(root, path) for path in list_files(root)]


def verify_files(root: str | Path, files: Iterable[types.FileEntry]) -> None:
    """Raises BadDataError naming the first file whose bytes differ from the record."""
    for expected in files:
        path = Path(root) / expected.path
        if not path.is_file():
            raise BadDataError(
                f"Cannot open '{root}' because its file '{expected.path}' is missing"
            )
        actual = file_entry(root, path)
        if (actual["sha256"], actual["bytes"]) != (expected.sha256, expected.bytes):
            raise BadDataError(
                f"Cannot open '{root}' because its file '{expected.path}' is not the recorded "
                "one: sha256 is "
                f"{actual['sha256']} ({actual['bytes']} bytes), recorded {expected.sha256} "
                f"({expected.bytes} bytes). The file was changed or damaged: use another "
                "checkpoint"
            )


def fsync_path(path: str | Path) -> None:
    """fsync of a file or a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fsync_tree(root: str | Path) -> None:
    """fsync of every file and directory under `root`, and `root`."""
    for directory, _, names in os.walk(root, topdown=False):
        for name in names:
            fsync_path(os.path.join(directory, name))
        fsync_path(directory)


def check_model_directory(directory: str | Path) -> ModelConfig:
    """
    The model's config.json, after checking that the directory is a model. Errors say how to fix it.
    """
    directory = Path(directory)
    if not directory.is_dir():
        what = "is a file, not a directory" if directory.exists() else "does not exist"
        raise BadDataError(
            f"Cannot open model '{directory}' because it {what}: set model.path to a directory "
            "with config.json, "
            "tokenizer.json and model.safetensors (as save_pretrained writes it)"
        )
    missing = [] if (directory / "config.json").is_file() else ["config.json"]
    if not any((directory / name).is_file() for name in (SINGLE_NAME, INDEX_NAME)):
        missing.append(f"{SINGLE_NAME} (or {INDEX_NAME} with its shards)")
    if not any(
        (directory / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")
    ):
        missing.append("tokenizer.json")
    if missing:
        hint = "write the model with model.save_pretrained(dir) and tokenizer.save_pretrained(dir)"
        if list(directory.glob("*.bin")) and any(SINGLE_NAME in name for name in missing):
            hint += "; its .bin weights are not read: open them once and save_pretrained(dir) writes safetensors"
        if (directory / ADAPTER_CONFIG_NAME).is_file():
            hint = (
                "it holds an adapter: merge it into its base model with PEFT's merge_and_unload() "
                "and name that directory"
            )
        raise BadDataError(
            f"Cannot open model '{directory}' because it lacks {', '.join(missing)}: {hint}"
        )
    try:
        config = json.loads((directory / "config.json").read_text())
    except ValueError as error:
        raise BadDataError(
            f"Cannot open model '{directory}' because its config.json is not JSON: {error}"
        ) from error
    if not config.get("architectures"):
        raise BadDataError(
            f"Cannot open model '{directory}' because its config.json names no architectures: add "
            "e.g. "
            '"architectures": ["Qwen2ForCausalLM"]'
        )
    return config


def replace_directory(temporary: str | Path, target: str | Path, *, home: str | Path) -> None:
    """
    Makes `temporary` durable and moves it to `target`, which readers see complete. Removes an older
    `target` if it is a directory inside `home`.
    """
    temporary, target = Path(temporary), Path(target)
    fsync_tree(temporary)
    if os.path.lexists(target):
        old = target.with_name(f".{target.name}.{os.getpid()}.old")
        removal.remove_tree(old, home=home, named=OLD)
        removal.replace_tree(target, temporary, home=home, old=old.name)
        removal.remove_tree(old, home=home, named=OLD)
    else:
        os.rename(temporary, target)
    fsync_path(target.parent)


def clear_directory(directory: str | Path, *, home: str | Path, named: str) -> None:
    """Creates an empty directory. Removes what was there, if it is ours."""
    removal.remove_tree(directory, home=home, named=named)
    Path(directory).mkdir(parents=True)


def count_elements(shape: Iterable[int]) -> int:
    """Elements of a tensor."""
    return math.prod(shape)
