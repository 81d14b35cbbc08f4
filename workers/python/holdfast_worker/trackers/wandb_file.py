"""
Reads W&B's own files: a log of records in blocks, as LevelDB writes it, each a protocol buffer.
What was being written at a kill is not read. (wandb 0.31 has no reader in Python; the format:
core/pkg/leveldb of github.com/wandb/wandb.)
"""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROTO: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")

FILE_HEADER = 7
BLOCK = 32_768
CHUNK = struct.Struct("<IHB")
WHOLE, LAST = 1, 4


def last_step(directory: Path, run: str) -> int:
    """
    The last step of a run in all files of it; 0 without one. The client numbers the directories of
    processes that began in one second.
    """
    files = directory.glob(f"offline-run-*/run-{run}.wandb")
    steps = [int(row["_step"]) for file in files for row in history(file) if "_step" in row]
    return max([0, *steps])


def history(file: Path) -> Iterator[dict[str, Any]]:
    """What was logged, row by row."""
    for data in records(file.read_bytes()):
        record = PROTO.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            yield {
                item.key or ".".join(item.nested_key): json.loads(item.value_json)
                for item in record.history.item
            }


def records(data: bytes) -> Iterator[bytes]:
    """The whole records of a file."""
    at, record = FILE_HEADER, b""
    while at + CHUNK.size <= len(data):
        room = BLOCK - at % BLOCK
        if room < CHUNK.size:
            at += room
            continue
        _, length, kind = CHUNK.unpack_from(data, at)
        at += CHUNK.size
        if kind == 0 or at + length > len(data):
            return
        record += data[at : at + length]
        at += length
        if kind in (WHOLE, LAST):
            yield record
            record = b""
