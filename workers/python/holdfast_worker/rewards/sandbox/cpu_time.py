"""What the processes of a program may use of the machine's processors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from holdfast_worker.process_table import cpu_s

PAUSE_S = 0.01


class CpuTime:
    """CPU time of a program's processes, and how much of it they may use until the next `allow`. It
    does not depend on what else the machine does, as time by the clock does.
    """

    def __init__(
        self,
        *,
        read: Callable[[int], float] = cpu_s,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._clock = clock
        self._running: set[int] = set()
        self._ended_s = 0.0
        self._limit_s = math.inf
        self._due = math.inf

    def begins(self, pid: int) -> None:
        self._running.add(pid)

    def ends(self, pid: int, used_s: float) -> None:
        """`used_s`: what it had used in the end."""
        if pid in self._running:
            self._running.remove(pid)
            self._ended_s += used_s

    def used_s(self) -> float:
        return self._ended_s + sum(map(self._read, self._running))

    def allow(self, seconds: float) -> None:
        """From now on; math.inf: no limit."""
        self._limit_s = self.used_s() + seconds if seconds < math.inf else math.inf
        self._due = self._clock() + seconds

    def is_used_up(self) -> bool:
        """Reads only once it may be true: one processor gives no more than what the clock says."""
        now = self._clock()
        if now < self._due:
            return False
        remaining_s = self._limit_s - self.used_s()
        self._due = now + max(remaining_s, PAUSE_S)
        return remaining_s <= 0

    def pause_s(self) -> float:
        """How long to wait before asking again."""
        return max(self._due - self._clock(), 0)
