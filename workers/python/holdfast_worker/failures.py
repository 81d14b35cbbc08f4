"""What went wrong on a rank, in the words of the protocol's FailureReport, and what kind of cause it was."""

from __future__ import annotations

import re
import signal
import time
import traceback
from pathlib import Path
from typing import Any

from holdfast_worker.operation import BadDataError, Cancelled, UserCodeError

MESSAGE_CHARS_MAX = 4_000
TRACEBACK_CHARS_MAX = 12_000
LOG_TAIL_LINES = 20
LOG_TAIL_BYTES = 32_768

OUT_OF_MEMORY_NAMES = {"OutOfMemoryError", "MemoryError"}
# torch; CUDA; cuBLAS and cuDNN, which tell it in a status; vLLM, as it starts.
OUT_OF_MEMORY_TEXTS = re.compile(
    r"OutOfMemoryError|(CUDA|CUDA error:|CUDA failure '?) ?out of memory|_STATUS_ALLOC_FAILED"
    r"|No available memory for the cache blocks|less than desired GPU memory utilization"
    r"|is larger than the available KV cache memory",
    re.IGNORECASE,
)
ADDRESS_IN_USE = re.compile(r"EADDRINUSE|address already in use", re.IGNORECASE)

# What gloo, NCCL and the TCPStore say on the ranks that were *not* at fault. gloo raises a plain RuntimeError: there is
# nothing but the text.
TIMEOUT_TEXTS = re.compile(
    r"watchdog caught collective operation timeout|watchdog detected operation timeout|NCCL operation timed out"
    r"|Timed out waiting \d+ ?ms|wait timeout after|client socket has timed out|Timed out after \d+ seconds"
    r"|failed to pass monitoredBarrier|watchdog got stuck|Socket Timeout",
    re.IGNORECASE,
)
PEER_TEXTS = re.compile(
    r"Connection closed by (remote )?peer|Connection reset by peer|Connection was likely closed|Broken pipe"
    r"|remote process exited|process exiting prematurely|remote error detected from rank|NCCL communicator was aborted"
    r"|Application timeout caused pair closure|nccl hit async error|ncclRemoteError|TCP client failed to connect",
    re.IGNORECASE,
)


def cause_of(error: BaseException, *, booting: bool = False) -> str:
    """The protocol's cause of an exception."""
    names = {kind.__name__ for kind in type(error).__mro__}
    text = str(error)
    if isinstance(error, UserCodeError):
        return "user_code"
    if isinstance(error, BadDataError):
        return "bad_data"
    if isinstance(error, Cancelled):
        return "cancelled"
    if names & OUT_OF_MEMORY_NAMES or "out of memory" in text.lower() or OUT_OF_MEMORY_TEXTS.search(text):
        return "out_of_memory"
    if booting and isinstance(error, ImportError):
        return "import_error"
    if isinstance(error, RuntimeError) and TIMEOUT_TEXTS.search(text):
        return "timeout"
    if isinstance(error, RuntimeError) and PEER_TEXTS.search(text):
        return "peer"
    return "other"


def report(rank: int, *, cause: str, message: str, log_path: str = "", **fields: Any) -> dict[str, Any]:
    """A FailureReport with every field."""
    return {
        "rank": rank,
        "cause": cause,
        "exception": None,
        "message": message[:MESSAGE_CHARS_MAX],
        "traceback": None,
        "exit_code": None,
        "signal": None,
        "log_tail": [],
        "log_path": log_path,
        "at_ms": time.time() * 1000,
        **fields,
    }


def report_of_exception(rank: int, error: BaseException, *, booting: bool = False) -> dict[str, Any]:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return report(
        rank,
        cause=cause_of(error, booting=booting),
        message=str(error) or type(error).__name__,
        exception=type(error).__name__,
        traceback=text[-TRACEBACK_CHARS_MAX:],
    )


def report_of_exit(rank: int, returncode: int, *, memory_hint: str | None) -> dict[str, Any]:
    """A rank ended without a word. `returncode` is negative for a signal, as subprocess gives it."""
    if returncode >= 0:
        return report(
            rank, cause="exit", message=f"The process ended with exit code {returncode}", exit_code=returncode
        )
    name = signal_name(-returncode)
    if memory_hint:
        message = f"The process was killed by {name} as the machine ran out of memory: {memory_hint}"
        return report(rank, cause="out_of_memory", message=message, signal=name)
    return report(rank, cause="signal", message=f"The process was killed by {name}", signal=name)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def with_log(item: dict[str, Any], path: str) -> dict[str, Any]:
    """
    A FailureReport with its rank's log. Where the rank could not say why, the log may: the error of a child that ran
    out of memory (vLLM's engine) stands only there.
    """
    line = _out_of_memory_line(path) if item["cause"] in ("other", "exit") else None
    found = {"cause": "out_of_memory", "message": f"{item['message']}: {line}"} if line else {}
    return {**item, **found, "log_path": path, "log_tail": log_tail(path)}


def _out_of_memory_line(path: str) -> str | None:
    lines = [line for line in _log_end(path) if OUT_OF_MEMORY_TEXTS.search(line)]
    return lines[-1].strip() if lines else None


def log_tail(path: str, lines: int = LOG_TAIL_LINES) -> list[str]:
    """The last lines of a log; nothing if it cannot be read."""
    return _log_end(path)[-lines:]


def _log_end(path: str) -> list[str]:
    try:
        with Path(path).open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - LOG_TAIL_BYTES))
            return [line[:2_000] for line in file.read().decode("utf-8", "replace").splitlines()]
    except OSError:
        return []
