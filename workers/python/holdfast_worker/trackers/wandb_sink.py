"""
Weights & Biases. Its own step is the number of a point; `global_step` is the axis of every metric.
Which point it has last, the server says when a run is resumed; offline, the files say it.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from holdfast_worker.trackers.sink import End, Opened, Point, Run, Samples, TrackerError
from holdfast_worker.trackers.wandb_file import last_step

WANDB: Any = importlib.import_module("wandb")
ERRORS: Any = importlib.import_module("wandb.errors")

ID_CHARS_MAX = 64


class WandBSink:
    def __init__(self, settings: dict[str, Any], run: Run) -> None:
        self._settings = settings
        self._run = run
        self._dir = Path(settings["dir"] or run["dir"])
        self._id = wandb_id(run["uid"])
        self._open: Any = None
        self._after = 0

    def open(self) -> Opened:
        self._dir.mkdir(parents=True, exist_ok=True)
        offline = self._settings["mode"] == "offline"
        # Before the client makes a new file.
        found = last_step(self._dir / "wandb", self._id) if offline else 0
        try:
            self._open = self._init()
        except ERRORS.UsageError as error:
            why = str(error).splitlines()[0].rstrip(".")
            raise TrackerError(
                f"Cannot log in to Weights & Biases because {why}. "
                "Fix: set WANDB_API_KEY, or `mode: offline`"
            ) from error
        self._open.define_metric("global_step")
        self._open.define_metric("*", step_metric="global_step")
        self._after = found if offline else max(0, self._open.step - 1)
        where = self._open.url or f"wandb sync {self._dir}/wandb/offline-run-*-{self._id}*"
        return Opened(self._after, where)

    def write(self, points: list[Point]) -> None:
        for point in points:
            if point["number"] <= self._after or not point["metrics"]:
                continue
            self._after = point["number"]
            values = {**point["metrics"], "global_step": point["step"]}
            self._open.log(values, step=point["number"], commit=True)

    def write_samples(self, samples: Samples) -> None:
        names = list(samples["rows"][0])
        rows = [[row[name] for name in names] for row in samples["rows"]]
        # A summary has no step: a table logged later would take a step of a point.
        self._open.summary["samples"] = WANDB.Table(columns=names, data=rows)

    def end(self, end: End) -> None:
        if end["card"]:
            self._open.summary["model_card"] = end["card"]
        self._open.summary["holdfast_status"] = end["status"]
        self._finish(1 if end["status"] in ("failed", "interrupted") else 0)

    def pause(self) -> None:
        self._finish(1)

    def _finish(self, exit_code: int) -> None:
        """The client's own process writes its file as it ends."""
        self._open.finish(exit_code=exit_code)
        WANDB.teardown(exit_code)

    def _init(self) -> Any:
        run, parent, settings = self._run, self._run["parent"], self._settings
        link = {"parent": parent["id"], "parent_round": parent["round"]} if parent else {}
        return WANDB.init(
            id=self._id,
            name=run["id"],
            project=settings["project"],
            entity=settings["entity"],
            mode=settings["mode"],
            dir=str(self._dir),
            resume="allow",
            config={**run["config"], "holdfast": {"run": run["id"], "dir": run["dir"], **link}},
            group=parent["id"] if parent else None,
            tags=["holdfast", *(["fork"] if parent else [])],
            notes=f"Fork of {parent['id']} after round {parent['round']}" if parent else None,
            settings=WANDB.Settings(console="off", silent=True, disable_git=True, save_code=False),
        )


def wandb_id(uid: str) -> str:
    """The end of a long one, which differs."""
    return uid[-ID_CHARS_MAX:]


os.environ.setdefault("WANDB_SILENT", "true")
