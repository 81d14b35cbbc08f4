"""
Rewards that do harm, on purpose or by mistake: `score` does what the completion names, and answers what it does not.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import gc
import json
import multiprocessing
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import msgpack

getcwd = os.getcwd
HOME = getcwd()
OWN = 0.5  # What a misbehaving call scores where it gets as far as that.
FORGED = 1e9
Row = dict[str, Any]


def score(completion: str, row: Row) -> Any:
    """An honest sample has its own number as its score."""
    if completion.isdigit():
        return float(completion) if getcwd() == HOME else -1.0
    return globals()[completion](row)


# Processes.


def fork_returns(row: Row) -> float:
    os.fork()
    return OWN


def fork_child_raises(row: Row) -> float:
    if os.fork() == 0:
        raise RuntimeError("in the child")
    return OWN


def fork_in_native_code(row: Row) -> float:
    ctypes.CDLL(None).fork()  # Python is not told.
    return OWN


def forks_stay(row: Row) -> float:
    for _ in range(8):
        if os.fork() == 0:
            time.sleep(1000)
    return OWN


def fork_parent_ends(row: Row) -> float:
    if os.fork():
        os._exit(0)
    return FORGED


def daemon(row: Row) -> float:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sleep", ["sleep", row["sleep"]], {})
        os._exit(0)
    os.wait()
    return OWN


def popen_left(row: Row) -> float:
    subprocess.Popen(["sleep", row["sleep"]], start_new_session=True, env={})
    return OWN


def pool_left(row: Row) -> float:
    for _ in range(2):
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,)).start()
    return OWN


def daemon_then_hang(row: Row) -> NoReturn:
    daemon(row)
    hang(row)


def fork_bomb(row: Row) -> NoReturn:
    while True:
        try:
            os.fork()
        except OSError:
            pass


def comet(row: Row) -> float:
    """A process that is a different one before anybody can kill it."""
    if os.fork() == 0:
        while True:
            if os.fork():
                os._exit(0)
    return OWN


def end_at_once(row: Row) -> NoReturn:
    os._exit(3)


def exit_in_python(row: Row) -> NoReturn:
    sys.exit(0)


def become_another(row: Row) -> NoReturn:
    os.execv("/bin/sleep", ["sleep", row["sleep"]])


def segfault(row: Row) -> None:
    ctypes.string_at(0)


def abort(row: Row) -> None:
    os.abort()


# Signals.


def kill_itself(row: Row) -> float:
    os.kill(os.getpid(), signal.SIGKILL)
    return OWN


def kill_group(row: Row) -> float:
    os.killpg(0, signal.SIGKILL)
    return OWN


def kill_parent(row: Row) -> float:
    os.kill(os.getppid(), signal.SIGKILL)
    return OWN


def stop_parent(row: Row) -> float:
    os.kill(os.getppid(), signal.SIGSTOP)
    return OWN


def stop_itself(row: Row) -> float:
    os.kill(os.getpid(), signal.SIGSTOP)
    return OWN


def kill_everybody(row: Row) -> float:
    if sum(name.isdigit() for name in os.listdir("/proc")) > 5:
        raise RuntimeError(f"this is not a namespace: it would be everybody indeed: {os.listdir('/proc')}")
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass  # Nobody is there.
    return OWN


def trace_parent(row: Row) -> float:
    attach = 16
    ctypes.CDLL(None).ptrace(attach, os.getppid(), None, None)
    return OWN


def deaf(row: Row) -> NoReturn:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    hang(row)


def leave_alarm(row: Row) -> float:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    return OWN


# Time.


def hang(row: Row) -> NoReturn:
    while True:
        pass


def sleep_long(row: Row) -> None:
    time.sleep(1000)


class HangsAtItsEnd:
    def __del__(self) -> None:
        hang({})


def hang_in_finalizer(row: Row) -> float:
    kept = HangsAtItsEnd()
    return OWN if kept else 0.0


class HangsAsText(Exception):
    def __str__(self) -> str:  # noqa: PLE0307 (It never returns.)
        hang({})


def hang_in_message(row: Row) -> NoReturn:
    raise HangsAsText


class HangsAsNumber(float):
    def __float__(self) -> float:
        hang({})


def hang_in_number(row: Row) -> float:
    return HangsAsNumber()


async def hang_async(row: Row) -> None:
    await asyncio.Event().wait()


async def task_left(row: Row) -> float:
    async def spoil() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            asyncio.get_running_loop().stop()

    asyncio.get_running_loop().create_task(asyncio.sleep(1000))
    return OWN


async def task_that_stays(row: Row) -> float:
    async def stay() -> None:
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                pass

    asyncio.get_running_loop().create_task(stay())
    await asyncio.sleep(0)
    return OWN


async def loop_closed(row: Row) -> float:
    loop = asyncio.get_running_loop()
    loop.call_soon(loop.stop)
    await asyncio.sleep(1000)
    return OWN


# The answer.


def channel() -> int:
    """The descriptor that answers go out by."""
    return next(one for one in gc.get_objects() if type(one).__name__ == "Channel").fileno()


def framed(message: Any) -> bytes:
    body = msgpack.packb(message)
    return struct.pack("<I", len(body)) + body


RESULT = {"outcome": "ok", "score": FORGED, "metrics": {}, "error": None}


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
    """It finds the request, answers it, and lets the real answer follow as an answer to whoever comes next."""
    (nonce,) = {one["nonce"] for one in gc.get_objects() if type(one) is dict and one.get("type") == "call"}
    os.write(channel(), framed({**RESULT, "score": OWN, "nonce": nonce}))
    time.sleep(0.3)
    return FORGED


def forge_no_number(row: Row) -> float:
    (nonce,) = {one["nonce"] for one in gc.get_objects() if type(one) is dict and one.get("type") == "call"}
    os.write(channel(), framed({**RESULT, "score": float("nan"), "nonce": nonce}))
    time.sleep(1000)
    return OWN


def flood_the_answer(row: Row) -> NoReturn:
    fd = channel()
    while True:
        os.write(fd, b"\xff" * 65536)


def fork_forges(row: Row) -> float:
    """The channel is kept from forks, but whoever has saved it first has it."""
    copy = os.dup(channel())
    if os.fork() == 0:
        while True:
            os.write(copy, framed(RESULT))
            time.sleep(0.001)
    time.sleep(0.05)
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
    """1 if it can read the run's token, as docs/rewards.md says: `hub.json` is the user's, and so is this process."""
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
    for module, name in ((os, "getpid"), (os, "_exit"), (json, "dumps"), (struct, "pack"), (time, "monotonic")):
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
