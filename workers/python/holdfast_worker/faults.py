"""
Faults on purpose: `HOLDFAST_FAULT=kill:trainer.1@op:17` makes a kill point an event, so that a
failing seed repeats.

Grammar: `KIND:PLACE[.RANK]@EVENT:N[,...]`. N counts the events of one process from its start;
without RANK a fault is rank 0's. It fires at most once per run: a marker in the run's faults
directory is made durable before anything breaks. `HOLDFAST_EVENTS=FILE` writes every event as one
JSON line {place, rank, event, n, phase}: kill tests draw from it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast_worker.wire.types import PHASES, ROLES

KINDS = ("kill", "stop", "drop", "disk_full", "oom")
PLACES = ("engine", "agent", *ROLES)
EVENTS = ("append", "frame", "op", "micro_batch")
FAULT = re.compile(
    r"(?P<kind>\w+):(?P<place>\w+)(?:\.(?P<rank>\d+))?@(?P<event>\w+):(?P<n>[1-9]\d*)"
)


def phase_of(role: str, op: str) -> str:
    """What a run is doing while a role runs an operation."""
    return PHASES.get((role, op), "other")


@dataclass(frozen=True)
class Fault:
    text: str
    kind: str
    place: str
    rank: int
    event: str
    n: int


def parse_faults(text: str) -> list[Fault]:
    """Every fault of the list. Raises ValueError with the grammar if one cannot be read."""
    faults: list[Fault] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = FAULT.fullmatch(part)
        known = (
            match
            and match["kind"] in KINDS
            and match["place"] in PLACES
            and match["event"] in EVENTS
        )
        if not match or not known:
            raise ValueError(
                f"Cannot read HOLDFAST_FAULT '{part}': expected KIND:PLACE[.RANK]@EVENT:N with "
                "KIND of "
                f"{', '.join(KINDS)}; PLACE of {', '.join(PLACES)}; EVENT of {', '.join(EVENTS)}; "
                "N from 1"
            )
        faults.append(
            Fault(
                part,
                match["kind"],
                match["place"],
                int(match["rank"] or 0),
                match["event"],
                int(match["n"]),
            )
        )
    return faults


def _signal_self(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(
        0
    )  # A pending signal to the own process is delivered on the way out of the call at the latest.


class Faults:
    """
    The faults of one process. `at` is called at every event and costs nothing when neither variable
    is set.
    """

    def __init__(
        self,
        faults: list[Fault],
        *,
        place: str,
        rank: int = 0,
        directory: str | None = None,
        events_path: str | None = None,
        actions: Mapping[str, Callable[[], None]] | None = None,
    ) -> None:
        self._actions: dict[str, Callable[[], None]] = {
            "kill": lambda: _signal_self(signal.SIGKILL),
            "stop": lambda: _signal_self(signal.SIGSTOP),
            **(actions or {}),
        }
        self._place, self._rank = place, rank
        self._mine = [fault for fault in faults if fault.place == place and fault.rank == rank]
        self._directory = Path(directory) if directory else None
        self._events_path = events_path
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        for fault in self._mine:
            if self._directory is None:
                raise ValueError(
                    f"Cannot use HOLDFAST_FAULT '{fault.text}' because HOLDFAST_FAULTS_DIR is not "
                    "set"
                )
            if fault.kind not in self._actions:
                raise ValueError(
                    f"Cannot use HOLDFAST_FAULT '{fault.text}' because {place} has no fault of "
                    f"kind '{fault.kind}'"
                )

    @classmethod
    def from_environment(
        cls, place: str, rank: int = 0, actions: Mapping[str, Callable[[], None]] | None = None
    ) -> Faults:
        return cls(
            parse_faults(os.environ.get("HOLDFAST_FAULT", "")),
            place=place,
            rank=rank,
            directory=os.environ.get("HOLDFAST_FAULTS_DIR"),
            events_path=os.environ.get("HOLDFAST_EVENTS"),
            actions=actions,
        )

    def at(self, event: str, phase: str) -> None:
        """One more event of this name happened in this process."""
        if not self._mine and not self._events_path:
            return
        with self._lock:
            n = self._counts[event] = self._counts.get(event, 0) + 1
        if self._events_path:
            self._record(
                {"place": self._place, "rank": self._rank, "event": event, "n": n, "phase": phase}
            )
        for fault in self._mine:
            if fault.event == event and fault.n == n and self._mark(fault):
                self._actions[fault.kind]()

    def _record(self, entry: dict[str, object]) -> None:
        line = json.dumps(entry, separators=(",", ":")) + "\n"
        fd = os.open(str(self._events_path), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(
                fd, line.encode()
            )  # One write to an appending descriptor: lines of several processes stay whole.
        finally:
            os.close(fd)

    def _mark(self, fault: Fault) -> bool:
        """Makes the marker durable. False if it is there: this fault has fired in this run."""
        assert self._directory is not None
        self._directory.mkdir(parents=True, exist_ok=True)
        try:
            fd = os.open(self._directory / fault.text, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return False
        for descriptor in (fd, os.open(self._directory, os.O_RDONLY)):
            os.fsync(descriptor)
            os.close(descriptor)
        return True
