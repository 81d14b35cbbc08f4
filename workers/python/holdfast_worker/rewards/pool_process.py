"""One process of the reward pool, as the pool sees it: started on demand, ended completely,
restarted.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from io import BufferedReader
from typing import Any, Literal, NotRequired, TypedDict, cast

from holdfast_worker.json_value import JsonObject, JsonValue
from holdfast_worker.operation import UserCodeError
from holdfast_worker.process_table import Tree, descendants, end_below, memory_bytes
from holdfast_worker.rank.channel import CHANNEL_VARIABLE, ChannelClosed
from holdfast_worker.rewards.confinement import GIB, SIGNAL_EXIT
from holdfast_worker.rewards.exchange import (
    BadAnswer,
    Exchange,
    FunctionSample,
    Loaded,
    SampleAnswer,
    Silent,
)
from holdfast_worker.rewards.reward_code import RewardCode

IMPORT_TIMEOUT_S = 120.0  # A grader may import torch on a busy machine.
END_S = 5.0
OUTPUT_BYTES_MAX = 64 << 10  # Limit of what one call may print to the log.
STDERR = 2

# What every reward inherits of our environment. docs/rewards.md says so.
INHERITED = {
    *(
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "XDG_CACHE_HOME",
    ),
    *(
        "LD_LIBRARY_PATH",
        "CUDA_VISIBLE_DEVICES",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
    ),
    *("HF_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "TOKENIZERS_PARALLELISM"),
    *("HOLDFAST_NONCE", "HOLDFAST_GROUP"),  # A later engine finds leftover processes by these.
}
INHERITED_PREFIXES = ("LC_", "PYTHON", "OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_")

UNSCORED = ("timeout", "error", "bad_return", "none")  # What a call answers in place of a score.


class Scored(TypedDict):
    """A `ScoredItem` without its id."""

    outcome: Literal["ok", "none", "timeout", "error", "bad_return", "crash", "bad_answer"]
    score: float | None
    metrics: dict[str, float]
    error: str | None
    ms: float
    code: NotRequired[str]
    token_scores: NotRequired[list[float]]


class PoolProcess:
    """For one thread at a time; `interrupt` is for any."""

    def __init__(self, code: RewardCode) -> None:
        self._code = code
        self._popen: subprocess.Popen[bytes] | None = None
        self._exchange: Exchange | None = None
        self._output: _Output | None = None
        self._loaded: Loaded | None = None
        self._stopped_for: str | None = None
        self.left_behind: str | None = None  # What a call left behind, the first time.

    def load(self) -> Loaded:
        """Imports the function. Raises UserCodeError with the user's frames if that fails."""
        if self._exchange and not self._exchange.is_idle():
            self.end()  # It has died, or received an unrequested write: this call is not to blame.
        if self._loaded:
            return self._loaded
        source = self._code.function
        try:
            answer = self._started().ask({"type": "load"}, IMPORT_TIMEOUT_S)
        except (Silent, BadAnswer, ChannelClosed) as error:
            match error:
                case Silent():
                    how = f"took longer than {IMPORT_TIMEOUT_S:g} s"
                case BadAnswer():
                    how = f"answered for us: {error}"
                case _:
                    how = f"ended the process ({self._fate()})"
            self.end()
            raise UserCodeError(f"Cannot import reward '{source}': the import {how}") from None
        if answer["error"] is not None:
            self.end()  # Half an import may stay in sys.modules.
            if answer.get("is_whole"):
                raise UserCodeError(str(answer["error"]))
            raise UserCodeError(f"Cannot import reward '{source}':\n{answer['error']}")
        self._loaded = cast("Loaded", answer)
        return self._loaded

    def call(self, items: Sequence[FunctionSample], timeout_ms: float) -> list[Scored]:
        """One call for these samples, within the time limit whatever the code does. Without an
        answer, each of them fails for the same reason.
        """
        code = self.load()["code"]
        started = time.monotonic()
        assert self._exchange and self._output
        self._output.begin_call()
        try:
            message = {"type": "call", "items": items}
            reply = self._exchange.ask(message, timeout_ms / 1000)
            answers = _checked(reply, len(items))
            ms = (time.monotonic() - started) * 1000 / len(items)
            if leftover := reply.get("leftover"):
                self._replace(str(leftover))
            return [{**answer, "ms": ms, "code": code} for answer in answers]
        except Silent:
            outcome = "timeout"
            text = f"no answer after {timeout_ms:g} ms: the process was killed"
        except BadAnswer as error:
            outcome = "bad_answer"
            text = f"the process itself wrote to the channel of its answer: {error}"
        except ChannelClosed:
            outcome = "crash"
            text = f"the process ended during the call: {self._stopped_for or self._fate()}"
        self.end()
        ms = (time.monotonic() - started) * 1000 / len(items)
        one: Scored = {"outcome": outcome, "score": None, "metrics": {}, "error": text, "ms": ms}
        return [one for _ in items]

    def _replace(self, leftover: str) -> None:
        """Ends the process before anything that a call left behind can read the next request."""
        self.end()
        if self.left_behind is None:
            self.left_behind = (
                f"a call of reward {self._code.function} leaves {leftover} behind: its process is "
                "replaced after each such call, and the file is imported again. Fix: end them in "
                "the call, or start them at the file's top"
            )
            os.write(STDERR, f"[{self.left_behind}]\n".encode(errors="replace"))

    def bound(self, tree: Tree) -> None:
        """Ends the process if it has started too many, or has too much memory, which the system
        limits except for shared memory. From any thread.
        """
        popen, count, gib = self._popen, self._code.processes_max, self._code.memory_gib
        if popen is None:
            return
        below = descendants(popen.pid, tree)
        if len(below) > count + 2:  # Itself, and a namespace's first process.
            self._stopped_for = f"it had started more than {count} processes (processes_max)"
            self.interrupt()
        elif gib is not None and any(memory_bytes(pid) > gib * GIB for pid in below):
            self._stopped_for = f"it used more than {gib:g} GiB with shared memory (memory_gib)"
            self.interrupt()

    def interrupt(self) -> None:
        """Ends what runs there. From any thread: a thread that waits for an answer sees the channel
        close.
        """
        popen = self._popen
        if popen and popen.returncode is None:
            end_below(popen.pid)

    def end(self) -> None:
        """
        Ends the process and all that it started; the next call starts a new one. For the thread
        that uses it.
        """
        if self._popen is None or self._exchange is None or self._output is None:
            return
        end_below(self._popen.pid)
        self._popen.kill()
        self._popen.wait()
        assert self._popen.stdin
        self._popen.stdin.close()
        self._exchange.close()
        self._output.end()
        self._popen, self._exchange, self._output = None, None, None
        self._loaded, self._stopped_for = None, None

    def _started(self) -> Exchange:
        """Its standard input is a pipe that nobody writes to: it ends when ours closes. In a
        separate session, so that it outlives a kill of our process group long enough to end what
        is below it.
        """
        if self._exchange:
            return self._exchange
        ours, theirs = socket.socketpair()
        with theirs:
            env = {
                **reward_environment(os.environ, self._code.env),
                CHANNEL_VARIABLE: str(theirs.fileno()),
            }
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "holdfast_worker.rewards.process", self._code.to_json()],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._output = _Output(self._popen)
        self._exchange = Exchange(ours)
        return self._exchange

    def _fate(self) -> str:
        """How the process ended. It has closed its channel, so it is about to end."""
        if self._popen is None:
            return "unknown"
        try:
            code = self._popen.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "it closed its channel"
        number = -code if code < 0 else code - SIGNAL_EXIT
        if number not in set(signal.Signals):
            return f"exit code {code}"
        more = (
            f": it used more than {self._code.cpu_s:g} s of CPU time (cpu_s)"
            if number == signal.SIGXCPU
            else ""
        )
        return f"killed by {signal.Signals(number).name}{more}"


def reward_environment(base: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """The part of our environment that user code sees: what it needs, and what the reward's
    settings name.
    """
    kept = {
        n: v
        for n, v in base.items()
        if n in INHERITED or n in names or n.startswith(INHERITED_PREFIXES)
    }
    return {**kept, "PYTHONUNBUFFERED": "1"}  # What it printed is in the log when it is killed.


def _checked(answer: JsonObject, count: int) -> list[SampleAnswer]:
    """A call's answers for `count` samples, checked: user code can reach whatever writes them."""
    whole, samples = answer.get("whole"), answer.get("samples")
    if whole is not None:
        failed = _checked_sample(whole)
        if failed["outcome"] == "ok":
            raise BadAnswer("it is no result")
        return [failed for _ in range(count)]
    if not isinstance(samples, list) or len(samples) != count:
        raise BadAnswer("it is no result")
    return [_checked_sample(sample) for sample in samples]


def _checked_sample(answer: JsonValue) -> SampleAnswer:
    if not isinstance(answer, dict):
        raise BadAnswer("it is no result")
    outcome, score, metrics, error = (
        answer.get(name) for name in ("outcome", "score", "metrics", "error")
    )
    numbers: dict[Any, object] = {"score": score} if outcome == "ok" else {}
    numbers |= metrics if isinstance(metrics, dict) else {"metrics": None}
    tokens = answer.get("token_scores")
    if tokens is not None and not _are_scores(tokens, outcome):
        raise BadAnswer("it is no result")
    is_scored = outcome == "ok" if error is None else outcome in UNSCORED and isinstance(error, str)
    if not is_scored or not all(
        isinstance(n, float) and math.isfinite(n) for n in numbers.values()
    ):
        raise BadAnswer("it is no result")
    if not all(isinstance(name, str) for name in numbers):
        raise BadAnswer("it is no result")
    checked = {"score": score if outcome == "ok" else None, "metrics": metrics, "error": error}
    by_token = {} if tokens is None else {"token_scores": tokens}
    return cast("SampleAnswer", {"outcome": outcome, **checked, **by_token})


def _are_scores(tokens: JsonValue, outcome: JsonValue) -> bool:
    """Of tokens of a sample that has a score."""
    if outcome != "ok" or not isinstance(tokens, list):
        return False
    return all(isinstance(n, float) and math.isfinite(n) for n in tokens)


class _Output:
    """Copies what a process prints to our log, up to the limit of a call."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        assert popen.stdout
        self._pipe = cast("BufferedReader", popen.stdout)
        self._remaining = OUTPUT_BYTES_MAX
        self._thread = threading.Thread(
            target=self._copy, name=f"holdfast-output-{popen.pid}", daemon=True
        )
        self._thread.start()

    def begin_call(self) -> None:
        self._remaining = OUTPUT_BYTES_MAX

    def end(self) -> None:
        self._thread.join(END_S)

    def _copy(self) -> None:
        with self._pipe:
            while data := self._pipe.read1(OUTPUT_BYTES_MAX):
                if self._remaining <= 0:
                    continue
                kept = data[: self._remaining]
                self._remaining -= len(kept)
                os.write(STDERR, kept)
                if self._remaining <= 0:
                    os.write(
                        STDERR,
                        f"\n[a reward call prints more than {OUTPUT_BYTES_MAX} bytes: omitted]\n".encode(),
                    )
