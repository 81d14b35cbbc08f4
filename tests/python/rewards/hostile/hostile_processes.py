"""Hostile rewards that start, end, signal or trace processes."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from typing import NoReturn

from hostile_scores import FORGED, OWN, Row
from hostile_time import hang


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
        raise RuntimeError(
            f"this is not a namespace: it would be everybody indeed: {os.listdir('/proc')}"
        )
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
