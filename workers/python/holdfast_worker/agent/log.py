"""What an agent says of itself, in its own log."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from holdfast_worker.rank.log import RotatingLog


def log(text: str) -> None:
    """Into the agent's own log."""
    line = f"{time.strftime('%H:%M:%S')} {text}\n"
    if _own_log:
        _own_log[0].write(line.encode("utf-8", "replace"))
    else:
        print(line, end="", file=sys.stderr, flush=True)


_own_log: list[RotatingLog] = []


def keep_own_log_small() -> None:
    """The parent of this process has opened its log, if it has one."""
    path = Path("/proc/self/fd/2").resolve()
    if path.is_file():
        _own_log.append(RotatingLog(path, follow=(1, 2)))
