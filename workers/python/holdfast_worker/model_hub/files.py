"""The files of a model at one commit: what they are, and whether the cache has them unharmed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

from holdfast_worker.model_hub.wanted import CONFIG_NAME, files_beside_weights
from holdfast_worker.operation import BadDataError
from holdfast_worker.weights import CHUNK_BYTES, INDEX_NAME, check_model_directory, weight_files

# Up to this size a file is read at every start. Weights are larger: the trainer reads those anyway.
SMALL_BYTES_MAX = 64 << 20


class HubFile(TypedDict):
    """`etag`: the hash by which the hub knows it. Large files: sha256. Others: git's sha1."""

    path: str
    bytes: int
    etag: str


def digest_of(files: Iterable[HubFile]) -> str:
    """One digest of a model's files."""
    lines = sorted(f"{file['etag']}  {file['path']}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def is_unharmed(path: Path, file: HubFile, *, whole: bool) -> bool:
    """
    Whether the cache's copy has the hub's bytes. Without `whole`, only the size of a large file is
    compared.
    """
    if not path.is_file() or path.stat().st_size != file["bytes"]:
        return False
    if file["bytes"] > SMALL_BYTES_MAX and not whole:
        return True
    return _hash(path, file) == file["etag"]


def _hash(path: Path, file: HubFile) -> str:
    git = len(file["etag"]) == hashlib.sha1(usedforsecurity=False).digest_size * 2
    hasher = hashlib.sha1(usedforsecurity=False) if git else hashlib.sha256()
    if git:
        hasher.update(f"blob {file['bytes']}\0".encode())
    with open(path, "rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            hasher.update(chunk)
    return hasher.hexdigest()


def files_in_cache(directory: Path, *, code: bool) -> list[HubFile] | None:
    """
    The files of a copy that is a model by itself; None: it is not one. Without the hub's list
    nobody knows about files that a model can do without.
    """
    try:
        check_model_directory(directory)
        weights = [path.relative_to(directory).as_posix() for path in weight_files(directory)]
    except BadDataError:
        return None
    names = [path.relative_to(directory).as_posix() for path in directory.rglob("*")]
    index = [INDEX_NAME] if (directory / INDEX_NAME).is_file() else []
    wanted = {*files_beside_weights(names, code=code), *index, *weights, CONFIG_NAME}
    files = [_in_cache(directory, name) for name in sorted(wanted)]
    if all(is_unharmed(directory / file["path"], file, whole=False) for file in files):
        return files
    return None


def _in_cache(directory: Path, name: str) -> HubFile:
    """The cache names every file by its hash, and links to it."""
    path = directory / name
    size = path.stat().st_size
    if path.is_symlink():
        return {"path": name, "bytes": size, "etag": os.path.basename(os.readlink(path))}
    file: HubFile = {"path": name, "bytes": size, "etag": ""}
    return {**file, "etag": _hash(path, file)}
