"""
TensorBoard's event files. Each point is one event, which is written whole or not at all: the number
of the last one is in the files themselves. Every start writes a file of its own.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from holdfast_worker.trackers.sink import End, Opened, Point, Run, Samples, flat

WRITER: Any = importlib.import_module("tensorboard.summary.writer.event_file_writer")
EVENT: Any = importlib.import_module("tensorboard.compat.proto.event_pb2")
SUMMARY: Any = importlib.import_module("tensorboard.compat.proto.summary_pb2")
LOADER: Any = importlib.import_module("tensorboard.backend.event_processing.event_file_loader")
TEXT: Any = importlib.import_module("tensorboard.plugins.text.metadata")
TENSOR: Any = importlib.import_module("tensorboard.util.tensor_util")


class TensorBoardSink:
    def __init__(self, settings: dict[str, Any], run: Run) -> None:
        named = settings["dir"]
        self._dir = Path(named) / run["uid"] if named else Path(run["dir"]) / "tensorboard"
        self._run = run
        self._after = 0
        self._writer: Any = None

    def open(self) -> Opened:
        self._dir.mkdir(parents=True, exist_ok=True)
        files = sorted(self._dir.glob("events.out.tfevents.*"))
        self._after = max([0, *(last_number(file) for file in files)])
        # One a second: files of one second and process would have one name otherwise.
        self._writer = WRITER.EventFileWriter(str(self._dir), filename_suffix=f".{len(files)}")
        if not files:
            self._text("holdfast/run", 0, self._described())
        return Opened(self._after, f"tensorboard --logdir {self._dir}")

    def write(self, points: list[Point]) -> None:
        for point in points:
            if point["number"] <= self._after or not point["metrics"]:
                continue
            values = [
                # The name of a node has no meaning to TensorBoard: the number is found again by it.
                SUMMARY.Summary.Value(
                    tag=tag, simple_value=value, node_name=f"point:{point['number']}"
                )
                for tag, value in point["metrics"].items()
            ]
            self._add(point["step"], values, at_s=point["at_ms"] / 1000)
            self._after = point["number"]
        self._writer.flush()

    def write_samples(self, samples: Samples) -> None:
        self._text("samples", samples["step"], table(samples["rows"]))
        self._writer.flush()

    def end(self, end: End) -> None:
        if end["card"]:
            self._text("holdfast/model_card", 0, end["card"])
        self._writer.close()

    def pause(self) -> None:
        self._writer.close()

    def _described(self) -> str:
        parent = self._run["parent"]
        link = f"Fork of {parent['id']} after round {parent['round']}.\n\n" if parent else ""
        settings = "\n".join(
            f"    {name}: {json.dumps(value)}" for name, value in flat(self._run["config"]).items()
        )
        return f"{link}{settings}"

    def _text(self, tag: str, step: int, text: str) -> None:
        value = SUMMARY.Summary.Value(
            tag=tag,
            metadata=TEXT.create_summary_metadata(display_name=tag, description=""),
            tensor=TENSOR.make_tensor_proto([text.encode()]),
        )
        self._add(step, [value], at_s=self._run["created_ms"] / 1000)

    def _add(self, step: int, values: list[Any], *, at_s: float) -> None:
        summary = SUMMARY.Summary(value=values)
        self._writer.add_event(EVENT.Event(wall_time=at_s, step=step, summary=summary))


def last_number(file: Path) -> int:
    """Of the last whole point of an event file; what was being written at a kill is not read."""
    last = 0
    for event in LOADER.LegacyEventFileLoader(str(file)).Load():
        for value in event.summary.value:
            kind, _, number = value.node_name.partition(":")
            if kind == "point":
                last = max(last, int(number))
    return last


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as a Markdown table."""
    names = list(rows[0])
    cells = [
        [str(row[name]).replace("|", "\\|").replace("\n", "<br>") for name in names] for row in rows
    ]
    lines = [names, ["---"] * len(names), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
