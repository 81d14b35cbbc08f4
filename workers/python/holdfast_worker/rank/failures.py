"""
What went wrong on a rank, in the words of the protocol's FailureReport, and what kind of cause it
was.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from holdfast_worker.limits import MESSAGE_BYTES_MAX
from holdfast_worker.operation import BadDataError, Cancelled, DiskFullError, UserCodeError
from holdfast_worker.rank.log import files_of
from holdfast_worker.wire.frames import FailureCause, FailureReport
from holdfast_worker.wire.received import plain

NAME_CHARS_MAX = 200
MESSAGE_CHARS_MAX = 4_000
REPORTS_BYTES_MAX = MESSAGE_BYTES_MAX // 4
TRACEBACK_CHARS_MAX = 12_000
LOG_TAIL_LINES = 20
LOG_TAIL_BYTES = 32_768
LOG_ERRORS_MAX = 40
LOG_ERRORS_BYTES = 262_144
LOG_ERROR_CHARS_MAX = 500

OUT_OF_MEMORY_NAMES = {"OutOfMemoryError", "MemoryError"}
ADDRESS_IN_USE = re.compile(r"EADDRINUSE|address already in use", re.IGNORECASE)
# Only a sieve, for the engine does not want whole logs: what a line means is judged in
# workers/failures/causes.ts.
LOOKS_LIKE_AN_ERROR = re.compile(
    r"error|exception|warn|fatal|fail|abort|terminate|timed? ?out|killed|memory|watchdog|died|"
    r"dead|lost|due to|no space",
    re.IGNORECASE,
)


def cause_of(error: BaseException, *, booting: bool = False) -> FailureCause:
    """What the rank is sure of by an exception's type. Texts are the engine's to judge."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, UserCodeError):
        return "user_code"
    if isinstance(error, BadDataError):
        return "bad_data"
    if isinstance(error, Cancelled):
        return "cancelled"
    if isinstance(error, DiskFullError):
        return "disk_full"
    if names & OUT_OF_MEMORY_NAMES:
        return "out_of_memory"
    if booting and isinstance(error, ImportError):
        return "import_error"
    return "other"


def report(
    rank: int,
    *,
    cause: FailureCause,
    message: str,
    exception: str | None = None,
    traceback: str | None = None,
    exit_code: int | None = None,
    signal: str | None = None,
) -> FailureReport:
    """Now, and without what logs and the machine say."""
    return FailureReport(
        rank=rank,
        cause=cause,
        exception=exception,
        message=message[:MESSAGE_CHARS_MAX],
        traceback=traceback,
        exit_code=exit_code,
        signal=signal,
        log_tail=[],
        log_errors=[],
        kernel=[],
        oom_kills=None,
        log_path="",
        at_ms=time.time() * 1000,
    )


def report_of_exception(rank: int, error: BaseException, *, booting: bool = False) -> FailureReport:
    name = type(error).__name__[:NAME_CHARS_MAX]
    try:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        message = str(error) or name
    except (
        Exception
    ) as of_error:  # User code's own: what it raises here must not hide that it failed.
        text = message = (
            f"{name}, whose text cannot be read ({type(of_error).__name__[:NAME_CHARS_MAX]})"
        )
    return report(
        rank,
        cause=cause_of(error, booting=booting),
        message=message,
        exception=name,
        traceback=text[-TRACEBACK_CHARS_MAX:],
    )


# What goes first says least.
SHORTENED: tuple[Callable[[FailureReport], FailureReport], ...] = (
    lambda item: replace(item, log_errors=[]),
    lambda item: replace(item, log_tail=[]),
    lambda item: replace(item, kernel=[]),
    lambda item: replace(item, traceback=None),
    lambda item: replace(item, message=""),
)


def fitting(reports: list[FailureReport]) -> list[FailureReport]:
    """Reports that a message has room for, of however many ranks."""
    for shortened in SHORTENED:
        if len(json.dumps(plain(reports))) <= REPORTS_BYTES_MAX:
            break
        reports = [shortened(item) for item in reports]
    return reports


def report_of_exit(rank: int, returncode: int) -> FailureReport:
    """
    A rank ended without a word. `returncode` is negative for a signal, as subprocess gives it.
    """
    if returncode >= 0:
        return report(
            rank,
            cause="exit",
            message=f"The process ended with exit code {returncode}",
            exit_code=returncode,
        )
    name = signal_name(-returncode)
    return report(rank, cause="signal", message=f"The process was killed by {name}", signal=name)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def with_log(item: FailureReport, path: str) -> FailureReport:
    """
    A FailureReport with what its rank's log says: the last lines, and those before them that look
    like errors. The error of a child that ran out of memory (vLLM's engine) stands only there.
    """
    tail = log_tail(path)
    before = _log_end(path, LOG_ERRORS_BYTES)[: -len(tail) or None]
    errors = [line[:LOG_ERROR_CHARS_MAX] for line in before if LOOKS_LIKE_AN_ERROR.search(line)]
    return replace(item, log_path=path, log_tail=tail, log_errors=errors[-LOG_ERRORS_MAX:])


def log_tail(path: str, lines: int = LOG_TAIL_LINES) -> list[str]:
    """The last lines of a log; nothing if it cannot be read."""
    return _log_end(path, LOG_TAIL_BYTES)[-lines:]


def _log_end(path: str, size: int) -> list[str]:
    data = b""
    try:
        for part in files_of(Path(path)):
            with part.open("rb") as file:
                missing = size - len(data)
                file.seek(max(0, file.seek(0, os.SEEK_END) - missing))
                data = file.read(missing) + data
            if len(data) >= size:
                break
    except OSError:
        pass
    return [line[:2_000] for line in data.decode("utf-8", "replace").splitlines()]
