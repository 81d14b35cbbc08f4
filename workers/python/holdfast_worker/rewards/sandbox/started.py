"""A process in a sandbox, as we see it: started, read within limits, ended with what it started."""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NoReturn

from holdfast_worker.process_table import cpu_s, descendants, end_below, kill_group, reap
from holdfast_worker.rewards.confinement import SIGNAL_EXIT
from holdfast_worker.rewards.sandbox.cpu_time import CpuTime

CHUNK_BYTES = 1 << 16
ERROR_BYTES_MAX = 4096
STDERR = 2

Outcome = Literal["right", "wrong", "error", "timeout", "memory", "crash", "output"]


class CannotStart(Exception):
    """The sandbox itself cannot be made: no program is to blame."""


class Ended(Exception):
    """A program did not do what it was asked: why."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome: Outcome = outcome
        self.detail = detail


class OutOfTime(TimeoutError):
    """The time by the clock was over although the program had not used its CPU time: it waits, or
    the machine has other work. Whether it is right is not known.
    """


class Started:
    """`prepare` runs in the child and returns in the process that becomes `argv`. Its standard
    input, output and errors are pipes that end here, but for a given `stdin`. What it uses counts
    in `cpu`. Each deadline is one by the clock: beyond it, OutOfTime is raised.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        prepare: Callable[[], None],
        stdin: int | None = None,
        cpu: CpuTime | None = None,
    ) -> None:
        self._cpu = cpu or CpuTime()
        reading, self.stdin = (stdin, -1) if stdin is not None else os.pipe()
        self.stdout, writing = os.pipe()
        self._stderr, errors = os.pipe()
        parent_end, tell = os.pipe()
        self._errors = b""
        self.pid = os.fork()
        if self.pid == 0:
            _become(argv, (reading, writing, errors), tell=tell, env=env, prepare=prepare)
        for descriptor in (writing, errors, tell, *(() if stdin is not None else (reading,))):
            os.close(descriptor)
        self._pidfd = os.pidfd_open(self.pid)
        self._cpu.begins(self.pid)
        self._code: int | None = None
        with os.fdopen(parent_end, "rb") as pipe:
            why = pipe.read().decode(errors="replace")
        for descriptor in (self.stdout, self._stderr):
            os.set_blocking(descriptor, False)
        if why:
            self.end()
            raise CannotStart(why)

    def send(self, data: bytes, deadline: float) -> None:
        """Raises Ended if it is not read in time, or if nobody reads any more."""
        os.set_blocking(self.stdin, False)
        rest = memoryview(data)
        while rest:
            self._wait({self.stdin: select.POLLOUT}, deadline)
            try:
                rest = rest[os.write(self.stdin, rest) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self.fate() from None

    def receive(self, length: int, deadline: float) -> bytes:
        """Raises Ended if fewer bytes come in time."""
        data = bytearray()
        while len(data) < length:
            self._wait({self.stdout: select.POLLIN}, deadline)
            try:
                part = os.read(self.stdout, min(CHUNK_BYTES, length - len(data)))
            except BlockingIOError:
                continue
            if not part:
                raise self.fate()
            data += part
        return bytes(data)

    def output(self, deadline: float, bytes_max: int) -> bytes:
        """All that it prints until it ends. Raises Ended if that is too late or too much, or if it
        ends with an exit code.
        """
        data = bytearray()
        while self._code is None:
            ready = self._wait({self.stdout: select.POLLIN, self._pidfd: select.POLLIN}, deadline)
            if self.stdout in ready and not self._drain(data, bytes_max):
                self._wait({self._pidfd: select.POLLIN}, deadline)
            if self._pidfd in ready:
                self._reaped()
        # What it started may still print: nobody waits for that.
        self._drain(data, bytes_max)
        if self._code != 0:
            raise self.fate()
        return bytes(data)

    def fate(self) -> Ended:
        """How it ended. It has closed a pipe, so it is about to."""
        self._read_errors()
        if self._code is None:
            ready = select.select([self._pidfd], [], [], 1.0)[0]
            if not ready:
                return Ended("crash", "it closed its output")
            self._reaped()
        self._read_errors()
        lines = self._errors.decode(errors="replace").strip().splitlines()
        last = lines[-1][-300:] if lines else ""
        if last.startswith("MemoryError") or "out of memory" in last.lower():
            return Ended("memory", "it needed more memory than memory_mib")
        if last.startswith("crash: "):
            return Ended("crash", last.removeprefix("crash: "))
        code = self._code or 0
        number = code - SIGNAL_EXIT if code > SIGNAL_EXIT else -code
        if number in set(signal.Signals):
            name = signal.Signals(number).name
            if number == signal.SIGXCPU:
                return Ended("timeout", "it used too much CPU time")
            return Ended("crash", f"it was killed by {name}")
        if code == 0:
            return Ended("crash", "it ended early")
        return Ended("error", last or f"it ended with exit code {code}")

    def end(self) -> None:
        """Ends it and everything below it, and waits until it is gone."""
        if self._pidfd < 0:
            return
        if self._code is None:
            used_s = cpu_s(self.pid)  # With what is below it, which nobody waits for.
            end_below(self.pid)
            kill_group(self.pid)
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            self._reaped(used_s)
        for descriptor in (self.stdin, self.stdout, self._stderr, self._pidfd):
            if descriptor >= 0:
                os.close(descriptor)
        self._pidfd = -1

    def _reaped(self, used_s: float = 0.0) -> None:
        _, status, usage = os.wait4(self.pid, 0)
        self._code = os.waitstatus_to_exitcode(status)
        self._cpu.ends(self.pid, max(used_s, usage.ru_utime + usage.ru_stime))

    def _drain(self, data: bytearray, bytes_max: int) -> bool:
        """Reads what is there. False: nothing more will come."""
        while True:
            try:
                part = os.read(self.stdout, CHUNK_BYTES)
            except BlockingIOError:
                return True
            if not part:
                return False
            data += part
            if len(data) > bytes_max:
                raise Ended("output", f"it printed more than {bytes_max} bytes")

    def _read_errors(self) -> None:
        try:
            while part := os.read(self._stderr, CHUNK_BYTES):
                self._errors = (self._errors + part)[-ERROR_BYTES_MAX:]
        except BlockingIOError:
            pass

    def _wait(self, events: Mapping[int, int], deadline: float) -> set[int]:
        """Which of these are ready. What it writes to its errors is read meanwhile."""
        poll = select.poll()
        for descriptor, event in events.items():
            poll.register(descriptor, event)
        poll.register(self._stderr, select.POLLIN)
        while True:
            if self._cpu.is_used_up():
                raise Ended("timeout", "it used its CPU time")
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise OutOfTime("the program took too long by the clock, but used little CPU time")
            pause_s = min(remaining_s, self._cpu.pause_s())
            found = {one for one, _ in poll.poll(math.ceil(pause_s * 1000))}
            if not found:
                continue
            if found != {self._stderr}:
                return found - {self._stderr}
            before = self._errors
            self._read_errors()
            if self._errors is before:  # Closed: it is always ready.
                poll.unregister(self._stderr)


def end_strangers(spared: Sequence[int]) -> None:
    """Ends every process below this one but these: what detached itself from its program."""
    this_pid = os.getpid()
    if any(below not in spared for below in descendants(this_pid)):
        end_below(this_pid, spared=[*spared, *(one for pid in spared for one in descendants(pid))])
    for below in descendants(this_pid):
        if below not in spared:
            reap(below)


def _become(
    argv: Sequence[str],
    pipes: tuple[int, int, int],
    *,
    tell: int,
    env: Mapping[str, str],
    prepare: Callable[[], None],
) -> NoReturn:
    """In the child. Reports what goes wrong before the program runs by a pipe it does not have."""
    try:
        os.setsid()
        for place, descriptor in enumerate(_above(pipes)):
            os.dup2(descriptor, place)
        child_end = _above([tell])[0]
        os.dup2(child_end, STDERR + 1, inheritable=False)
        os.closerange(STDERR + 2, 1 << 16)
        tell = STDERR + 1
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        prepare()
        os.execve(argv[0], list(argv), dict(env))
    except BaseException as error:
        os.write(tell, f"{type(error).__name__}: {error}".encode(errors="replace"))
    os._exit(1)


def _above(descriptors: Sequence[int]) -> list[int]:
    """Copies beyond those that a program is given."""
    import fcntl

    return [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 16) for one in descriptors]


PYTHON = sys.executable
