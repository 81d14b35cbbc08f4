"""
Rewards that do harm, on purpose or by mistake: `score` does what the completion names, and answers
what it does not.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import mmap
import os
import resource
import signal
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import msgpack

import hostile_answers
import hostile_files
import hostile_processes
import hostile_time
from hostile_scores import OWN, Row
from hostile_time import hang

getcwd = os.getcwd
HOME = getcwd()


def score(completion: str, row: Row) -> Any:
    """An honest sample has its own number as its score."""
    if completion.isdigit():
        return float(completion) if getcwd() == HOME else -1.0
    for module in (hostile_answers, hostile_files, hostile_processes, hostile_time):
        if hasattr(module, completion):
            return getattr(module, completion)(row)
    return globals()[completion](row)


# What it returns or raises.


def nothing(row: Row) -> None:
    return None


def text(row: Row) -> Any:
    return "1"


def infinity(row: Row) -> float:
    return float("inf")


def not_a_number(row: Row) -> Any:
    return {"score": 1.0, "part": float("nan")}


def huge_integer(row: Row) -> int:
    return 10**5000


def tensor(row: Row) -> Any:
    import numpy

    return numpy.ones(3)


def generator(row: Row) -> Iterator[float]:
    yield OWN


def metrics_no_dict(row: Row) -> Any:
    return {"score": 1.0, "metrics": 3}


def million_metrics(row: Row) -> Any:
    return {"score": 1.0, **{str(n): 1.0 for n in range(100_000)}}


def huge_metric_name(row: Row) -> Any:
    return {"score": OWN, "\ud800" * 10_000_000: 1.0}


def huge_message(row: Row) -> NoReturn:
    raise ValueError("x" * 50_000_000)


def unprintable_message(row: Row) -> NoReturn:
    raise ValueError("\ud800\x00")


def no_message(row: Row) -> NoReturn:
    class Mute(Exception):
        def __str__(self) -> str:
            raise self

    raise Mute


def interrupt(row: Row) -> NoReturn:
    raise KeyboardInterrupt


def recursion(row: Row) -> float:
    return recursion(row)


# What it uses.


def memory_at_once(row: Row) -> float:
    return float(len(bytearray(64 << 30)))


def memory_slowly(row: Row) -> float:
    kept = []
    while True:
        kept.append(bytearray(64 << 20))


def shared_memory(row: Row) -> NoReturn:
    """In a mapping that no limit of the system counts."""
    kept = mmap.mmap(-1, 512 << 20)
    for _ in range(64):
        kept.write(bytes(8 << 20))
    hang(row)


def memory_as_files(row: Row) -> NoReturn:
    """In files that have no name and are in no mapping. Each has the allowed size."""
    for _ in range(64):
        os.write(os.memfd_create("kept"), bytes(8 << 20))
    hang(row)


def memory_of_the_system(row: Row) -> float:
    """In segments that stay when they are in no mapping: 32 MiB each, 512 MiB in all."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    libc.shmdt.argtypes = [ctypes.c_void_p]
    for _ in range(16):
        segment = libc.shmget(0, 32 << 20, 0o1600)
        if segment == -1:
            raise OSError(ctypes.get_errno(), "no more segments")
        place = libc.shmat(segment, None, 0)
        ctypes.memset(place, 1, 32 << 20)
        libc.shmdt(place)
    return OWN


def cpu(row: Row) -> NoReturn:
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    hang(row)


def fill_the_disk(row: Row) -> float:
    with open(row["file"], "wb") as file:
        while True:
            file.write(b"\x00" * (1 << 20))


def print_much(row: Row) -> float:
    for _ in range(8):
        os.write(1, b"noise\n" * 200_000)
    return OWN


def no_descriptors(row: Row) -> float:
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    return OWN


def find_secrets(row: Row) -> float:
    """1 if one can be read anywhere, of this process or of any that it sees."""
    found = row["secret"] in "".join(os.environ.values())
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/environ", encoding="utf-8", errors="replace") as file:
                found = found or row["secret"] in file.read()
        except OSError:
            pass
    return float(found)


def read_hub(row: Row) -> float:
    """
    1 if it can read the run's token, as docs/rewards.md says: `hub.json` is the user's, and so is
    this process.
    """
    with open(row["hub"], encoding="utf-8") as file:
        return float(json.load(file)["token"] == row["secret"])


# What it leaves in the process.


def thread_left(row: Row) -> float:
    threading.Thread(target=hang, args=(row,), daemon=True).start()
    return OWN


def at_exit(row: Row) -> float:
    atexit.register(hang, row)
    return OWN


def change_directory(row: Row) -> float:
    os.chdir("/")
    return OWN


def change_modules(row: Row) -> float:
    for module, name in (
        (os, "getpid"),
        (os, "_exit"),
        (json, "dumps"),
        (struct, "pack"),
        (time, "monotonic"),
    ):
        setattr(module, name, lambda *_: 7)
    signal.setitimer = os.getcwd = os.chdir = os.waitid = hang  # type: ignore[assignment]
    return OWN


def change_encoding(row: Row) -> float:
    msgpack.packb = lambda *_, **__: b"\xc0" * 8
    return OWN


def close_output(row: Row) -> float:
    sys.stdout = sys.stderr = None  # type: ignore[assignment]
    os.close(1)
    os.close(2)
    return OWN
