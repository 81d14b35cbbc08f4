"""
A tracker whose process kills itself with SIGKILL at its n-th message with points: before it writes
them, half-way through them, or once they are written and before it says so.
"""

import itertools
import os
import signal
import sys
from typing import Any

from holdfast_worker.trackers import serve
from holdfast_worker.trackers.sink import Sink

when, nth = sys.argv[1], int(sys.argv[2])
messages = itertools.count(1)
write = serve.write


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed(sink: Sink, message: dict[str, Any], resources: Any) -> None:
    if next(messages) != nth:
        return write(sink, message, resources)
    if when == "half":
        half = message["points"][: (len(message["points"]) + 1) // 2]
        sink.write(half)
    elif when == "after":
        write(sink, message, resources)
    return die()


serve.write = killed
serve.main()
