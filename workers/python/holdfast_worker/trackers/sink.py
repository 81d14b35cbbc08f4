"""What every tracker can do: open the run, say what it has, write points, end."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict, cast


class Parent(TypedDict):
    """The run that a fork continues, and its last inherited round."""

    id: str
    uid: str | None
    round: int


class Run(TypedDict):
    """A run as trackers know it. `uid` names it among those of all homes."""

    id: str
    uid: str
    name: str
    created_ms: int
    config: dict[str, Any]
    dir: str
    home: str
    parent: Parent | None


class Point(TypedDict):
    """
    The values of metrics at a step, each metric once. Numbers count from 1 without gaps. `round`:
    None outside loops; several points may have one step, and at most one of them is a round's.
    """

    number: int
    step: int
    round: dict[str, Any] | None
    at_ms: int
    metrics: dict[str, float]


class Samples(TypedDict):
    """Completions of the round that closed at a step."""

    step: int
    rows: list[dict[str, Any]]


class End(TypedDict):
    """How the engine leaves the run. `card`: what it has made, in Markdown."""

    status: str
    card: str | None


@dataclass(frozen=True)
class Opened:
    """`after`: the number of the last point that the tracker has. `where`: where people see it."""

    after: int
    where: str


class Sink(Protocol):
    """
    One tracker with one run open. A point may be written again after a kill: the tracker then has
    it once, as a sink either says in `open` what is there or skips what it finds.
    """

    def open(self) -> Opened: ...

    def write(self, points: list[Point]) -> None:
        """The tracker has them when it returns, or finds out at its next start that it has not."""
        ...

    def write_samples(self, samples: Samples) -> None: ...

    def end(self, end: End) -> None: ...

    def pause(self) -> None:
        """The engine has died: what was written is made durable."""
        ...


class TrackerError(Exception):
    """What a person can fix: a missing credential or package, a server that is not there."""


SINKS = {
    "tensorboard": "tensorboard_sink:TensorBoardSink",
    "mlflow": "mlflow_sink:MLflowSink",
    "wandb": "wandb_sink:WandBSink",
    "trackio": "trackio_sink:TrackioSink",
}


def sink_of(settings: dict[str, Any], run: Run) -> Sink:
    """The sink of a tracker. Its client is imported only here."""
    module, _, name = SINKS[settings["name"]].partition(":")
    try:
        imported = importlib.import_module(f"holdfast_worker.trackers.{module}")
    except ModuleNotFoundError as error:
        raise TrackerError(
            f"Cannot use {settings['name']} because its client is not installed: {error}. "
            "Fix: install it there, or leave `python` out for a managed environment"
        ) from error
    return cast(Sink, getattr(imported, name)(settings, run))


def flat(config: Any, path: str = "") -> dict[str, Any]:
    """A configuration as `a.b.0.c`: value, for trackers that have no nested ones."""
    if isinstance(config, dict) and config:
        fields = cast(dict[str, Any], config)
        parts = [flat(value, f"{path}.{name}" if path else name) for name, value in fields.items()]
        return {name: value for part in parts for name, value in part.items()}
    if isinstance(config, list) and config:
        items = cast(list[Any], config)
        return flat({str(index): item for index, item in enumerate(items)}, path)
    return {path: config}
