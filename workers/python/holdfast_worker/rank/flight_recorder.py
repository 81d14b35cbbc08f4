"""
NCCL's flight recorder: which collectives every rank has entered and left. torch keeps it in memory
and writes it to a file when a collective times out, or when it is asked. Both names of each
variable, as torch has renamed them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

ENTRIES = "2000"


def prefix(log_dir: str, group: str, generation: int) -> str:
    """
    Every rank's dump is this and its number. Next to the logs, so that all evidence is in one
    place.
    """
    return str(Path(log_dir) / f"{group.replace('/', '_')}.gen{generation}.flight.rank")


def environment(log_dir: str, group: str, generation: int) -> dict[str, str]:
    """Has torch keep the record and say where it goes. Means nothing to gloo."""
    path = prefix(log_dir, group, generation)
    return {
        "TORCH_FR_BUFFER_SIZE": ENTRIES,
        "TORCH_NCCL_TRACE_BUFFER_SIZE": ENTRIES,
        "TORCH_FR_DUMP_TEMP_FILE": path,
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": path,
        "TORCH_FR_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": path,
    }


def ask(log_dir: str, group: str, *, generation: int, ranks: Iterable[int]) -> bool:
    """Asks every rank for its dump. False if none listens: no NCCL there."""
    path = prefix(log_dir, group, generation)
    return any([_ask(f"{path}{rank}.pipe") for rank in ranks])  # noqa: C419 (Every rank is asked.)


def _ask(pipe: str) -> bool:
    try:
        fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False  # No such pipe, or nobody reads it.
    try:
        os.write(fd, b"1")
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def clean(log_dir: str, group: str, *, generation: int, ranks: Iterable[int]) -> None:
    """Removes the pipes of a generation that has ended: they are no evidence."""
    for rank in ranks:
        Path(f"{prefix(log_dir, group, generation)}{rank}.pipe").unlink(missing_ok=True)
