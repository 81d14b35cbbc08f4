"""What /proc says about processes. Everything is a snapshot: a process may be gone when it is read."""

from __future__ import annotations

import os
from pathlib import Path


def process_start(pid: int) -> str | None:
    """Field 22 of /proc/PID/stat: clock ticks after boot."""
    fields = _stat(pid)
    return fields[19] if fields else None


STATE_NAMES = {"R": "running", "S": "sleeping", "D": "waiting for the disk", "T": "stopped", "t": "traced", "Z": "dead"}


def process_state(pid: int) -> str:
    """As the kernel sees it, in words."""
    fields = _stat(pid)
    return STATE_NAMES.get(fields[0], fields[0]) if fields else "gone"


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state (field 3) on; the name before it may hold blanks and brackets."""
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
    for pid in _pids():
        fields = _stat(pid)
        if fields and fields[0] not in "ZX" and fields[2] == str(pgid):
            return True
    return False


def carriers(assignment: bytes) -> list[int]:
    """Processes whose environment at start had this assignment."""
    found = []
    for pid in _pids():
        try:
            if assignment in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
        except OSError:
            continue
    return found


def descendants(pid: int) -> list[int]:
    """All processes below this one that have not been given another parent, the nearest first."""
    parents: dict[int, list[int]] = {}
    for other in _pids():
        fields = _stat(other)
        if fields:
            parents.setdefault(int(fields[1]), []).append(other)
    found = list(parents.get(pid, []))
    for child in found:  # Grows while it is walked.
        found.extend(parents.get(child, []))
    return found
