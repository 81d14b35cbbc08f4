"""What /proc says of processes, and what a library's reading of it would lose."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from holdfast_worker.process_table import (
    alive_in_group,
    carriers,
    descendants,
    end_below,
    memory_bytes,
    process_start,
    process_state,
    reap,
)

FOREVER = "import signal; print('there', flush=True); signal.pause()"
# Starts one below itself and tells its pid.
PARENT = f"""
import subprocess, sys, signal
child = subprocess.Popen([sys.executable, "-c", {FOREVER!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
signal.pause()
"""
Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts Python in a group of its own."""
    started: list[subprocess.Popen[str]] = []

    def run(code: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield run
    for process in started:
        end_below(process.pid)
        process.kill()
        process.wait()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def test_a_name_with_brackets_and_blanks_hides_neither_state_nor_start(tmp_path: Path) -> None:
    hostile = tmp_path / "a) Z 1 2"
    shutil.copy("/bin/sleep", hostile)
    process = subprocess.Popen([hostile, "60"])
    try:
        assert psutil.Process(process.pid).name() == hostile.name
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert process_state(process.pid) == "stopped"
        ticks = process_start(process.pid)
        assert ticks is not None
        since_boot = psutil.Process(process.pid).create_time() - psutil.boot_time()
        assert abs(int(ticks) / os.sysconf("SC_CLK_TCK") - since_boot) < 0.02
    finally:
        process.kill()
        process.wait()
    assert (process_state(process.pid), process_start(process.pid)) == ("gone", None)


def test_a_process_that_has_ended_is_dead_until_it_is_reaped(start: Start) -> None:
    process = start(FOREVER)
    first_line(process)
    assert alive_in_group(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process_state(process.pid) == "dead"
    assert not alive_in_group(process.pid)
    reap(process.pid)
    assert process_state(process.pid) == "gone"
    reap(process.pid)


def test_an_empty_entry_hides_no_assignment() -> None:
    pid = os.fork()
    if pid == 0:  # Python drops such an entry: the system call is made by itself.
        import ctypes

        arguments = (ctypes.c_char_p * 3)(b"sleep", b"60", None)
        environment = (ctypes.c_char_p * 4)(b"FIRST=1", b"", b"HOLDFAST_TESTED=yes", None)
        ctypes.CDLL(None).execve(b"/bin/sleep", arguments, environment)
        os._exit(1)
    try:
        while b"FIRST=1" not in Path(f"/proc/{pid}/environ").read_bytes():
            os.sched_yield()  # A new program has its name before its environment.
        assert pid in carriers(b"HOLDFAST_TESTED=yes")
        assert pid not in carriers(b"HOLDFAST_TESTED=ye")
        assert psutil.Process(pid).environ() == {"FIRST": "1"}  # Why this is not psutil's.
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_end_below_spares_who_is_named_and_the_process_itself(start: Start) -> None:
    parent = start(PARENT)
    child = int(first_line(parent))
    assert descendants(parent.pid) == [child]
    assert end_below(parent.pid, spared=[child])
    assert process_state(child) not in ("dead", "gone")
    assert end_below(parent.pid)
    assert process_state(child) in ("dead", "gone")
    assert process_state(parent.pid) not in ("dead", "gone")


MEASURED = """
import mmap, os
from holdfast_worker.process_table import memory_bytes
MIB = 1 << 20
filled = bytes(MIB)
start = memory_bytes(os.getpid())
def grown(): return round((memory_bytes(os.getpid()) - start) / MIB)
shared = mmap.mmap(-1, 16 * MIB)
for _ in range(16): shared.write(filled)
print(grown())
fd = os.memfd_create("kept")
for _ in range(32): os.write(fd, filled)
print(grown())
file = mmap.mmap(fd, 32 * MIB)
print(sum(file[at] for at in range(0, 32 * MIB, 4096)) or grown())
"""


def test_memory_has_shared_mappings_and_files_in_memory_and_each_byte_once() -> None:
    """Of a file that is open and of mappings, the larger sum: the same bytes may be in both."""
    process = subprocess.run(
        [sys.executable, "-c", MEASURED], stdout=subprocess.PIPE, text=True, check=True
    )
    mapped, opened, both = map(int, process.stdout.split())
    assert (mapped, opened) == pytest.approx((16, 32), abs=2)
    assert both == pytest.approx(48, abs=2)
    assert memory_bytes(1 << 30) == 0


def test_a_file_that_is_closed_meanwhile_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    fds = [os.memfd_create(name) for name in ("closed", "kept")]
    for fd in fds:
        os.write(fd, bytes(64 << 20))
    readlink = os.readlink

    def closed(path: str) -> str:
        if path.endswith(f"/fd/{fds[0]}"):
            raise FileNotFoundError(path)
        return readlink(path)

    whole = memory_bytes(os.getpid())
    monkeypatch.setattr(os, "readlink", closed)
    rest = memory_bytes(os.getpid())
    for fd in fds:
        os.close(fd)
    assert whole - rest == pytest.approx(64 << 20, abs=16 << 20)


def test_files_of_equal_numbers_in_two_file_systems_are_both_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a small file in /dev/shm would hide a large one that has no name."""
    fds = [os.memfd_create(name) for name in ("large", "small")]
    os.write(fds[0], bytes(64 << 20))
    os.write(fds[1], bytes(1))
    stat, number = os.stat, os.stat(fds[0]).st_ino

    def elsewhere(path: str, **how: bool) -> object:
        found = stat(path, **how)
        if not str(path).endswith(f"/fd/{fds[1]}"):
            return found
        blocks = found.st_blocks
        return SimpleNamespace(st_dev=found.st_dev + 1, st_ino=number, st_blocks=blocks)

    whole = memory_bytes(os.getpid())
    monkeypatch.setattr(os, "stat", elsewhere)
    counted = memory_bytes(os.getpid())
    for fd in fds:
        os.close(fd)
    assert counted == pytest.approx(whole, abs=16 << 20)
