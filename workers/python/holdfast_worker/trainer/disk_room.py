"""
Room on the disk for what the trainer is about to write. A full disk is reported before the first
byte.
"""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from holdfast_worker.operation import DiskFullError
from holdfast_worker.removal import RemovalRefused, remove_tree
from holdfast_worker.trainer.engines.engine import TrainingEngine

BESIDE_TENSORS_BYTES = 1 << 20  # Per rank: random generators, headers, names, shapes.
FIX = "Free space on it, keep fewer checkpoints (checkpoints.keep_last), or move the home to a different disk (--home)"
# torch writes through C++ streams, which do not keep the system's error message: see `no_space` in
# workers/failures/causes.ts.
FULL = re.compile(
    r"No space left on device|Disk quota exceeded|basic_ios::clear: iostream error|\. unexpected pos"
)


def weights_bytes(engine: TrainingEngine, source: Any, form: str = "merged") -> int:
    """
    Approximate bytes that this rank writes of a Hugging Face directory, or of a PEFT directory if
    `form` is adapter: the tensors in memory, and the other files.
    """
    if engine.rank != 0:
        return 0
    tensors = trained_bytes(engine.module) if form == "adapter" else module_bytes(engine.module)
    return tensors + sum(map(len, source.files.values())) + BESIDE_TENSORS_BYTES


def module_bytes(module: Any) -> int:
    """
    Bytes of a model's tensors, including those that ZeRO 3 has sharded. A shared tensor counts
    once.
    """
    return _bytes((*module.parameters(), *module.buffers()))


def trained_bytes(module: Any) -> int:
    """Bytes of the trained tensors: all except those frozen because of an adapter."""
    frozen = [parameter for parameter in module.parameters() if not parameter.requires_grad]
    return module_bytes(module) - _bytes(frozen)


def _bytes(tensors: Iterable[Any]) -> int:
    return sum(
        getattr(tensor, "ds_numel", tensor.numel()) * tensor.element_size() for tensor in tensors
    )


def require_room(engine: TrainingEngine, directory: Path, rank_bytes: int) -> None:
    """
    Raises DiskFullError on every rank if the bytes of all ranks together do not fit; `rank_bytes`
    are this rank's. All use rank 0's number of free bytes, so that they agree. Also a barrier.
    """
    parts = engine.gather((rank_bytes, free_bytes(directory)))
    needed, free = sum(wanted for wanted, _ in parts), parts[0][1]
    if needed > free:
        raise DiskFullError(
            f"Cannot write '{directory}' because its disk is full: about {needed} bytes are needed "
            f"and {free} are free. {FIX}"
        )


def free_bytes(directory: Path) -> int:
    """Free bytes of the file system of a directory, which need not exist yet."""
    for place in (directory, *directory.parents):
        try:
            return shutil.disk_usage(place).free
        except FileNotFoundError:
            continue
    raise FileNotFoundError(
        f"Cannot tell the free bytes of '{directory}' because no directory above it exists"
    )


@contextmanager
def leaving_nothing_behind(directory: Path, *, home: str, named: str) -> Generator[None]:
    """
    If the disk is or becomes full, removes what was written to `directory`, and the error names it.
    `home`, `named`: as for `remove_tree`; what must not be removed stays.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, DiskFullError):
            _remove(directory, home=home, named=named)
            raise
        if not _is_disk_full(error):
            raise
        free = free_bytes(directory)
        _remove(directory, home=home, named=named)
        text = f"Cannot write '{directory}' because its disk is full: {free} bytes are free. {FIX}"
        raise DiskFullError(f"{text} ({error})") from error


def _remove(directory: Path, *, home: str, named: str) -> None:
    """
    The disk's error matters more than this cleanup. All ranks do this, so one may remove what
    another has written.
    """
    with suppress(OSError, RemovalRefused):
        remove_tree(directory, home=home, named=named)


def _is_disk_full(error: BaseException | None) -> bool:
    """
    Also true if it was raised while an error of a full disk was handled: torch then fails to close
    its file.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if FULL.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False
