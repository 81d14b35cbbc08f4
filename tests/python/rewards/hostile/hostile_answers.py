"""Hostile rewards that write where answers go."""

from __future__ import annotations

import gc
import os
import socket
import struct
import threading
import time
from typing import Any, NoReturn

import msgpack

from hostile_scores import FORGED, OWN, Row


def channel() -> int:
    """The descriptor that answers go out by."""
    return next(one for one in gc.get_objects() if type(one).__name__ == "Channel").fileno()


def framed(message: Any) -> bytes:
    body = msgpack.packb(message)
    return struct.pack("<I", len(body)) + body


def result(score: float) -> dict[str, object]:
    one = {"outcome": "ok", "score": score, "metrics": {}, "error": None}
    return {"whole": None, "samples": [one]}


RESULT = result(FORGED)


def write_everywhere(row: Row) -> float:
    for fd in range(3, 256):
        try:
            os.write(fd, b"\x00" * 64)
        except OSError:
            pass
    return OWN


def forge(row: Row) -> float:
    os.write(channel(), framed(RESULT))
    return OWN


def forge_in_advance(row: Row) -> float:
    os.write(channel(), framed({**RESULT, "nonce": "0" * 32}) * 20)
    return OWN


def forge_by_its_nonce(row: Row) -> float:
    """
    It finds the request, answers it, and lets the real answer follow as an answer to whoever comes
    next.
    """
    (nonce,) = {
        one["nonce"] for one in gc.get_objects() if type(one) is dict and one.get("type") == "call"
    }
    os.write(channel(), framed({**result(OWN), "nonce": nonce}))
    time.sleep(0.3)
    return FORGED


def forge_no_number(row: Row) -> float:
    (nonce,) = {
        one["nonce"] for one in gc.get_objects() if type(one) is dict and one.get("type") == "call"
    }
    os.write(channel(), framed({**result(float("nan")), "nonce": nonce}))
    time.sleep(1000)
    return OWN


def flood_the_answer(row: Row) -> NoReturn:
    fd = channel()
    while True:
        os.write(fd, b"\xff" * 65536)


def fork_forges(row: Row) -> float:
    """The channel is kept from forks, but whoever has saved it first has it."""
    copy = os.dup(channel())
    forged, tell = os.pipe()
    if os.fork() == 0:
        while True:
            os.write(copy, framed(RESULT))
            os.write(tell, b".")
            time.sleep(0.001)
    os.read(forged, 1)  # A busy machine may not start the child before this call would end.
    return OWN


def thread_forges(row: Row) -> float:
    def write() -> None:
        while True:
            os.write(channel(), framed(RESULT))
            time.sleep(0.001)

    threading.Thread(target=write, daemon=True).start()
    return OWN


def thread_steals(row: Row) -> float:
    """Requests, from the process that they are for."""
    fd = channel()
    copy = socket.socket(fileno=os.dup(fd))

    def read() -> None:
        while copy.recv(4096):
            pass

    threading.Thread(target=read, daemon=True).start()
    return OWN


def thread_answers(row: Row) -> float:
    """It takes the next request, and answers it as the process would."""
    copy = socket.socket(fileno=os.dup(channel()))

    def answer() -> None:
        while True:
            (length,) = struct.unpack("<I", copy.recv(4, socket.MSG_WAITALL))
            request = msgpack.unpackb(copy.recv(length, socket.MSG_WAITALL))
            copy.sendall(framed({**RESULT, "nonce": request["nonce"]}))

    threading.Thread(target=answer, daemon=True).start()
    return OWN


def begin_and_sleep(row: Row) -> float:
    fd = channel()
    os.write(fd, struct.pack("<I", 100))
    time.sleep(1000)
    return OWN


def begin_and_return(row: Row) -> float:
    fd = channel()
    os.write(fd, struct.pack("<I", 2))
    return OWN


def print_into_the_answer(row: Row) -> float:
    fd = channel()
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.write(1, b"four score and seven")
    return OWN


def close_everything(row: Row) -> float:
    os.closerange(0, 256)
    return OWN


def close_and_open(row: Row) -> float:
    """Something else has the channel's number now."""
    os.closerange(3, 256)
    row["kept"] = [open(os.devnull, "wb") for _ in range(64)]  # noqa: SIM115 (They stay open.)
    return OWN
