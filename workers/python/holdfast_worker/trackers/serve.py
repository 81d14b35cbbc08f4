"""
One tracker's process: reads messages of the engine and answers each with a line. When it cannot
continue it says why and ends: the engine starts it again later. Standard output is only for
answers; what clients print goes to standard error, the log.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterator
from typing import IO, Any

from holdfast_worker.trackers.resources import Resources
from holdfast_worker.trackers.sink import Sink, TrackerError, sink_of

Message = dict[str, Any]


def serve(messages: Iterator[Message], answers: IO[str], sink: Sink | None = None) -> None:
    """Until the end of the messages. What a sink raises is the last answer."""

    def say(answer: Message) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    resources: Resources | None = None
    try:
        for message in messages:
            if "open" in message:
                opening = message["open"]
                sink = sink or sink_of(opening["settings"], opening["run"])
                opened = sink.open()
                resources = Resources(opening["run"]["home"])
                say({"opened": {"after": opened.after, "where": opened.where}})
                continue
            if sink is None or resources is None:
                raise TrackerError("Cannot use a tracker that was not opened")
            if "points" in message:
                write(sink, message, resources)
                say({"confirmed": len(message["points"])})
            elif "end" in message:
                sink.end(message["end"])
                say({"ended": True})
                return
        if sink is not None:
            sink.pause()
    except Exception as error:
        traceback.print_exc()
        say({"failed": reason(error)})


def write(sink: Sink, message: Message, resources: Resources) -> None:
    """The newest round also says what the machine does; older ones waited, and do not know."""
    points = message["points"]
    if points and points[-1]["round"]:
        points[-1]["metrics"] = {**points[-1]["metrics"], **resources.now()}
    if points:
        sink.write(points)
    for samples in message["samples"]:
        try:
            sink.write_samples(samples)
        except Exception:  # Tables are extra: a server that takes none still has the metrics.
            traceback.print_exc()


def reason(error: Exception) -> str:
    """One line. What a client raises often has more, which is in the log."""
    if isinstance(error, TrackerError):
        return str(error)
    first = (str(error).strip().splitlines() or [""])[0][:300]
    return f"{type(error).__name__}: {first}".rstrip(": ")


def lines_of(stream: IO[str]) -> Iterator[Message]:
    for line in stream:
        yield json.loads(line)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(lines_of(sys.stdin), answers)
    sys.stderr.flush()
    os._exit(0)  # Threads of a client whose server is gone must not keep it.


if __name__ == "__main__":
    main()
