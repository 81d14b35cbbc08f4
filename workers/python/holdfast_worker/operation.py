"""
What a role's worker sees: where it runs (`RankContext`), and one operation's doors to the outside
(`OperationIO`).

A worker module has a class `Worker(context)` with `boot() -> dict` (heavy imports; it returns the
rank's info) and `operations: dict[str, Callable[[dict, OperationIO], dict]]`. Operations run one at
a time on the process's main thread.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from holdfast_worker.json_value import JsonValue
from holdfast_worker.limits import ANSWER_BYTES_MAX, BLOBS_MAX

PROGRESS_INTERVAL_S = 0.1  # At most ten a second leave a rank; a change of phase always does.
PHASE_CHARS_MAX = 200
PROGRESS_METRICS_MAX = 1_000


class UserCodeError(Exception):
    """User code (a reward, a loss, a reader) failed: a second try would fail the same way."""


class BadDataError(Exception):
    """
    An input is broken (a data row, a model directory, a wrong hash): a second try would fail the
    same way.
    """


class TooLargeError(BadDataError):
    """An answer that is too large for the connection to the engine."""


class DiskFullError(Exception):
    """
    A disk has no room for the data. Nothing of it is left there, and the rank's state is unchanged.
    """


class Cancelled(Exception):
    """The engine asked for this task to end. Raised by `OperationIO.check_cancelled`."""


@dataclass(frozen=True)
class RankContext:
    """
    One rank of one generation of a group. `master_addr:master_port` is the rendezvous, fresh in
    every generation: rank 0 listens there (a TCPStore, or `init_method="env://"`), the others
    connect.
    """

    role: str
    group: str
    generation: int
    rank: int
    world_size: int
    spec: JsonValue
    artifacts_dir: str
    master_addr: str = "127.0.0.1"
    master_port: int = 0
    log_dir: str = ""
    home: str = ""  # The tree in which this rank may remove files; empty: nowhere.


class ArtifactName(Protocol):
    """What an artifact is found and checked by."""

    @property
    def sha256(self) -> str: ...
    @property
    def bytes(self) -> int: ...


@dataclass(frozen=True)
class Progress:
    """How far an operation is. `total` is None where nobody knows it."""

    phase: str
    done: float
    total: float | None
    metrics: dict[str, float]


@dataclass
class OperationIO:
    """
    One operation's input and output besides its arguments. The rank creates it;
    `OperationIO.alone()` is for tests.
    """

    key: str
    attempt: int
    task: str
    artifacts_dir: str
    send_progress: Callable[[Progress], None] = lambda progress: None
    happened: Callable[[str], None] = lambda event: (
        None
    )  # An event inside the operation; fault tests act on it.
    keep_blobs: bool = True  # Only rank 0's are delivered; other ranks' are counted and dropped.
    cancelled: threading.Event = field(default_factory=threading.Event)
    blobs: list[bytes] = field(default_factory=list[bytes])

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[str, float] = ("", -math.inf)
        self._blob_bytes = 0

    @classmethod
    def alone(cls, artifacts_dir: str = "", **fields: Any) -> OperationIO:
        """
        An IO without a rank around it: `progress` goes to `send_progress` if given, blobs stay in
        `blobs`.
        """
        alone = cls(key="alone", attempt=1, task="alone", artifacts_dir=artifacts_dir)
        return replace(alone, **fields)

    def progress(
        self, phase: str, done: float, total: float | None = None, **metrics: float
    ) -> None:
        """Reports progress. From any thread, at any rate: excess reports are dropped."""
        now = time.monotonic()
        with self._lock:
            last_phase, at = self._last
            if phase == last_phase and now - at < PROGRESS_INTERVAL_S and done != total:
                return
            self._last = (phase, now)
        finite = {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
        known = total if total is not None and math.isfinite(total) else None
        self.send_progress(
            Progress(
                phase=phase[:PHASE_CHARS_MAX],
                done=float(done) if math.isfinite(done) else 0.0,
                total=None if known is None else float(known),
                metrics=dict(list(finite.items())[:PROGRESS_METRICS_MAX]),
            )
        )

    def blob(self, data: bytes | bytearray | memoryview) -> int:
        """
        Adds bytes to the result and returns their index. Delivered with it, from rank 0 only.
        Raises TooLargeError if the answer is full.
        """
        self._blob_bytes += len(data)
        if len(self.blobs) >= BLOBS_MAX or self._blob_bytes > ANSWER_BYTES_MAX:
            raise TooLargeError(
                f"Cannot add blob {len(self.blobs)} of {len(data)} bytes to the answer of task "
                f"{self.task} because it "
                f"would have {self._blob_bytes} bytes: an answer holds at most {BLOBS_MAX} blobs "
                f"of {ANSWER_BYTES_MAX} "
                "bytes together. Fix: give the operation less at once, or write files"
            )
        self.blobs.append(bytes(data) if self.keep_blobs else b"")
        return len(self.blobs) - 1

    def read_artifact(self, ref: ArtifactName) -> bytes:
        """The bytes of an artifact of this home, checked against their hash."""
        sha256 = ref.sha256
        if not (len(sha256) == 64 and set(sha256) <= set("0123456789abcdef")):
            raise BadDataError(
                f"Cannot read an artifact because its name is not a sha256: {sha256!r}"
            )
        path = Path(self.artifacts_dir) / sha256[:2] / sha256
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise BadDataError(
                f"Cannot read artifact {sha256} because {path} is not there"
            ) from None
        found = hashlib.sha256(data).hexdigest()
        if found != sha256 or len(data) != ref.bytes:
            raise BadDataError(
                f"Cannot read artifact {sha256} because {path} holds {len(data)} bytes with sha256 "
                f"{found}"
            )
        return data

    def check_cancelled(self) -> None:
        """
        Raises `Cancelled` once the engine has asked for this task to end. Call it between pieces of
        work.
        """
        if self.cancelled.is_set():
            raise Cancelled(f"Cannot continue with task {self.task} because it was cancelled")
