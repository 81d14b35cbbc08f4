"""
What /proc says about processes. Everything is a snapshot: a process may be gone when it is read.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection
from pathlib import Path

END_BELOW_S = 5.0
END_BELOW_PASS_S = 0.002


def process_start(pid: int) -> str | None:
    """Field 22 of /proc/PID/stat: clock ticks after boot."""
    fields = _stat(pid)
    return fields[19] if fields else None


STATE_NAMES = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting for the disk",
    "T": "stopped",
    "t": "traced",
    "Z": "dead",
}


def process_state(pid: int) -> str:
    """As the kernel sees it, in words."""
    fields = _stat(pid)
    return STATE_NAMES.get(fields[0], fields[0]) if fields else "gone"


def _stat(pid: int) -> list[str] | None:
    """
    Fields of /proc/PID/stat from the state (field 3) on; the name before it may hold blanks and
    brackets.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def alive_in_group(pgid: int) -> bool:
    """Whether a process of this group is neither dead nor a zombie."""
    return any(_group(pid) == pgid and _is_alive(pid) for pid in _pids())


def carriers(assignment: bytes) -> list[int]:
    """Processes whose environment at start had this assignment."""
    found: list[int] = []
    for pid in _pids():
        try:
            if assignment in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
        except OSError:
            continue
    return found


Tree = dict[int, list[int]]


def process_tree() -> Tree:
    """Every process's children, by pid."""
    children: Tree = {}
    for pid in _pids():
        fields = _stat(pid)
        if fields:
            children.setdefault(int(fields[1]), []).append(pid)
    return children


def descendants(pid: int, tree: Tree | None = None) -> list[int]:
    """All descendants of this process that were not reparented, the nearest first."""
    children = process_tree() if tree is None else tree
    found = list(children.get(pid, []))
    for child in found:  # Grows while it is walked.
        found.extend(children.get(child, []))
    return found


def cpu_s(pid: int) -> float:
    """CPU time of this process and of all below it, those that were waited for too."""
    ticks = [
        sum(map(int, fields[11:15]))  # Fields 14 to 17: its own, and that of those it waited for.
        for one in [pid, *descendants(pid)]
        if (fields := _stat(one))
    ]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


SHARED_FILES = ("/memfd:", "/dev/shm/", "/SYSV")


def memory_bytes(pid: int) -> int:
    """What this process has written to: its own memory, and shared memory that it maps or has open,
    which no limit of the system counts. 0 for one that is gone.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    sizes = {name: value for name, _, value in (line.partition(":") for line in lines)}
    anonymous, mapped = (
        int(sizes.get(f"Rss{kind}", "0").split()[0]) << 10 for kind in ("Anon", "Shmem")
    )
    return anonymous + max(mapped, _open_shared_bytes(pid))


def _open_shared_bytes(pid: int) -> int:
    """Of files in memory that it has open, mapped or not."""
    sizes: dict[tuple[int, int], int] = {}
    directory = f"/proc/{pid}/fd"
    try:
        names = os.listdir(directory)
    except OSError:
        return 0
    for name in names:
        try:
            if os.readlink(f"{directory}/{name}").startswith(SHARED_FILES):
                found = os.stat(f"{directory}/{name}")
                sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
        except OSError:
            continue  # Closed meanwhile.
    return sum(sizes.values())


def end_below(pid: int, *, spared: Collection[int] = (), within_s: float = END_BELOW_S) -> bool:
    """
    Kills every process below this one, with its process group, until none is left: what was forked
    meanwhile is found by the next pass. False if the time was over first.
    """
    deadline = time.monotonic() + within_s
    own_group = _group(pid)
    while True:
        living = [below for below in descendants(pid) if below not in spared and _is_alive(below)]
        if not living:
            return True
        for below in living:
            group = _group(below)
            if group > 1 and group != own_group and not spared:
                kill_group(group)
            _kill(os.kill, below)
        if time.monotonic() > deadline:
            return False
        time.sleep(END_BELOW_PASS_S)


def kill_group(group: int) -> None:
    """Reads the whole table at once: a process that forks and ends outruns a list of pids."""
    _kill(os.killpg, group)


def reap(child: int) -> None:
    """
    Collects the status of a child that has ended, or of all in a group (a negative id). Does
    nothing for others.
    """
    try:
        while os.waitpid(child, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def _is_alive(pid: int) -> bool:
    fields = _stat(pid)
    return fields is not None and fields[0] not in "ZX"


def _group(pid: int) -> int:
    """Below 1 for one that is about to be gone, and for a group of another namespace."""
    fields = _stat(pid)
    return int(fields[2]) if fields else -1


def _kill(kill: Callable[[int, int], None], target: int) -> None:
    try:
        kill(target, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
