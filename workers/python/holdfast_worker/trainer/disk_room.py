"""
Room on the disk for what the trainer is about to write. A full disk is reported before the first
byte.
"""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from holdfast_worker.operation import DiskFullError
from holdfast_worker.removal import RemovalRefused, remove_tree
from holdfast_worker.trainer.engine import TrainingEngine

BESIDE_TENSORS_BYTES = 1 << 20  # Of one rank: random generators, headers, names, shapes.
FIX = "Free space on it, keep fewer checkpoints (checkpoints.keep_last), or move the home to a different disk (--home)"
# torch writes through C++ streams, which do not keep the system's word: see `no_space` in
# workers/causes.ts.
FULL = re.compile(
    r"No space left on device|Disk quota exceeded|basic_ios::clear: iostream error|\. unexpected pos"
)


def weights_bytes(engine: TrainingEngine, source: Any, form: str = "merged") -> int:
    """
    About what this rank writes of a Hugging Face directory, or with `form` adapter of a PEFT
    directory: the tensors in memory, and the files beside them.
    """
    if engine.rank != 0:
        return 0
    tensors = trained_bytes(engine.module) if form == "adapter" else module_bytes(engine.module)
    return tensors + sum(map(len, source.files.values())) + BESIDE_TENSORS_BYTES


def module_bytes(module: Any) -> int:
    """
    Bytes of a model's tensors, also of those that ZeRO 3 has cut up. A shared one counts once.
    """
    return _bytes((*module.parameters(), *module.buffers()))


def trained_bytes(module: Any) -> int:
    """Of those that training changes: all but what is frozen beside an adapter."""
    frozen = [parameter for parameter in module.parameters() if not parameter.requires_grad]
    return module_bytes(module) - _bytes(frozen)


def _bytes(tensors: Iterable[Any]) -> int:
    return sum(
        getattr(tensor, "ds_numel", tensor.numel()) * tensor.element_size() for tensor in tensors
    )


def require_room(engine: TrainingEngine, directory: Path, own_bytes: int) -> None:
    """
    Raises DiskFullError on every rank if what all ranks together write, `own_bytes` of it this one,
    does not fit. All go by rank 0's number of free bytes, for all must come to the same. Also the
    barrier.
    """
    parts = engine.gather((own_bytes, free_bytes(directory)))
    needed, free = sum(own for own, _ in parts), parts[0][1]
    if needed > free:
        raise DiskFullError(
            f"Cannot write '{directory}' because its disk is full: about {needed} bytes are needed "
            f"and {free} are free. {FIX}"
        )


def free_bytes(directory: Path) -> int:
    """Of the file system that holds a directory, which need not be there yet."""
    for place in (directory, *directory.parents):
        try:
            return shutil.disk_usage(place).free
        except FileNotFoundError:
            continue
    raise FileNotFoundError(
        f"Cannot tell the free bytes of '{directory}' because no directory above it exists"
    )


@contextmanager
def leaving_nothing_behind(directory: Path, *, home: str, named: str) -> Iterator[None]:
    """
    Where the disk is or runs full, what was written of `directory` is removed, and the error names
    it. `home`, `named`: as of `remove_tree`; what may not be removed stays.
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
    The disk's error is what matters, whatever becomes of this. All ranks come here: one removes
    what another has.
    """
    with suppress(OSError, RemovalRefused):
        remove_tree(directory, home=home, named=named)


def _is_disk_full(error: BaseException | None) -> bool:
    """
    Also if it came while an error of a full disk was handled: torch closes its file and fails at
    that.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if FULL.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False
