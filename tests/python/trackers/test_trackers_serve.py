import io
import json
from pathlib import Path
from typing import Any

from holdfast_worker.trackers.serve import reason, serve
from holdfast_worker.trackers.sink import Opened, TrackerError
from in_trackers import RUN


class Memory:
    """A sink that remembers, and refuses what it is asked to."""

    def __init__(self, refuses: str | None = None) -> None:
        self.refuses = refuses
        self.calls: list[Any] = []

    def open(self) -> Opened:
        return Opened(3, "here")

    def write(self, points: list[Any]) -> None:
        self._take("write", [point["number"] for point in points], points)

    def write_samples(self, samples: Any) -> None:
        self._take("samples", samples["step"])

    def end(self, end: Any) -> None:
        self._take("end", end["status"])

    def pause(self) -> None:
        self._take("pause")

    def _take(self, name: str, *values: Any) -> None:
        if name == self.refuses:
            raise ConnectionError("nobody\nis there")
        self.calls.append((name, *values))


def served(sink: Memory, *messages: dict[str, Any], home: Path) -> list[Any]:
    answers = io.StringIO()
    opened = {"open": {"settings": {"name": "memory"}, "run": {**RUN, "home": str(home)}}}
    serve(iter([opened, *messages]), answers, sink)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def point(number: int, round: Any = None) -> dict[str, Any]:
    return {"number": number, "step": number, "round": round, "at_ms": 0, "metrics": {"a": 1.0}}


OPENED = {"opened": {"after": 3, "where": "here"}}


def test_each_message_has_an_answer_and_the_newest_round_has_resources(tmp_path: Path) -> None:
    sink = Memory()
    points = [point(4), point(5, {"loop": "round", "round": 5})]
    messages = [
        {"points": points, "samples": [{"step": 5, "rows": []}]},
        {"points": [point(6)], "samples": []},
        {"end": {"status": "done", "card": None}},
    ]
    answers = served(sink, *messages, home=tmp_path)
    assert answers == [OPENED, {"confirmed": 2}, {"confirmed": 1}, {"ended": True}]
    (_, _, first), samples, (_, _, second), end = sink.calls
    assert "system/disk_free_gib" in first[1]["metrics"]
    assert first[0]["metrics"] == second[0]["metrics"] == {"a": 1.0}
    assert [samples, end] == [("samples", 5), ("end", "done")]


def test_an_engine_that_is_gone_lets_it_pause(tmp_path: Path) -> None:
    sink = Memory()
    assert served(sink, home=tmp_path) == [OPENED]
    assert sink.calls == [("pause",)]


def test_a_write_that_fails_is_the_last_answer_and_a_table_that_fails_is_not(
    tmp_path: Path,
) -> None:
    message = {"points": [point(4)], "samples": [{"step": 4, "rows": []}]}
    failed = {"failed": "ConnectionError: nobody"}
    assert served(Memory("write"), message, message, home=tmp_path) == [OPENED, failed]
    assert served(Memory("samples"), message, home=tmp_path) == [OPENED, {"confirmed": 1}]


def test_a_reason_is_one_line() -> None:
    assert reason(TrackerError("Cannot. Fix: do")) == "Cannot. Fix: do"
    assert reason(KeyError()) == "KeyError"
