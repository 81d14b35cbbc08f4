"""Hostile rewards that fill /dev/shm. Each removes what it wrote, because it may be the machine's."""

from __future__ import annotations

import mmap
import tempfile
from pathlib import Path
from typing import NoReturn

from hostile_scores import OWN, Row
from hostile_time import hang

SHARED_MEMORY = "/dev/shm"
MIB = 1 << 20
FILES = 40  # Of 8 MiB, which is allowed: together more than the memory that is.


def closed_files(row: Row) -> float:
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as place:
        for number in range(FILES):
            Path(place, str(number)).write_bytes(bytes(8 * MIB))
    return OWN


def mapped_files(row: Row) -> NoReturn:
    kept = []
    for _ in range(FILES):
        with tempfile.TemporaryFile(dir=SHARED_MEMORY) as file:
            file.truncate(8 * MIB)
            kept.append(mmap.mmap(file.fileno(), 8 * MIB))
        kept[-1].write(bytes(8 * MIB))
    hang(row)
