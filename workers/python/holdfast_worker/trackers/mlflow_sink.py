"""
MLflow. The run is found again by a tag; a value at a step that its metric has already is not sent
again, so a point that was sent in part before a kill is completed.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import time
from typing import Any

from holdfast_worker.trackers.sink import End, Opened, Point, Run, Samples, TrackerError, flat

# A server that is down is tried again later, by a new process.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
# A directory is what the user names; MLflow asks whether it is meant.
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")

MLFLOW: Any = importlib.import_module("mlflow")
ENTITIES: Any = importlib.import_module("mlflow.entities")

UID = "holdfast.uid"
POINT = "holdfast.point"
NOT_IN_NAMES = re.compile(r"[^\w\-. :/]")
METRICS_MAX = 1000
PARAMS_MAX = 100
VALUE_CHARS_MAX = 500
NOTE_CHARS_MAX = 5000
STATUS = {"done": "FINISHED", "failed": "FAILED", "cancelled": "KILLED", "interrupted": "KILLED"}


class MLflowSink:
    def __init__(self, settings: dict[str, Any], run: Run) -> None:
        uri = settings["uri"] or os.environ.get("MLFLOW_TRACKING_URI")
        if not uri:
            raise TrackerError(
                "Cannot use MLflow because no server is named. "
                "Fix: set `uri`, or the variable MLFLOW_TRACKING_URI"
            )
        self._uri = str(uri)
        self._experiment = settings["experiment"]
        self._run = run
        self._client: Any = None
        self._id = ""
        # As the server had them when this process opened the run.
        self._last_steps: dict[str, int] = {}
        self._all_steps: dict[str, set[int]] = {}

    def open(self) -> Opened:
        # Models are not registered, so every kind of server will do.
        self._client = MLFLOW.MlflowClient(tracking_uri=self._uri, registry_uri="file:/nowhere")
        try:
            experiment = self._experiment_id()
        except MLFLOW.exceptions.MlflowException as error:
            if "Max retries exceeded" not in str(error):
                raise
            raise TrackerError(
                f"Cannot reach MLflow at {self._uri}. Fix: start the server, or correct `uri`"
            ) from error
        known = self._find(experiment, self._run["uid"])
        self._id = known or self._create(experiment)
        if known:
            self._client.update_run(self._id, status="RUNNING")
        run = self._client.get_run(self._id)
        self._log_params(set(run.data.params))
        self._last_steps = {metric.key: metric.step for metric in run.data._metric_objs}
        after = int(run.data.tags.get(POINT, 0))
        where = f"experiment {self._experiment}, run {self._id} at {self._uri}"
        return Opened(after, where)

    def write(self, points: list[Point]) -> None:
        metrics = [
            ENTITIES.Metric(key=key, value=value, timestamp=point["at_ms"], step=point["step"])
            for point in points
            for key, value in self._fresh(point).items()
        ]
        for start in range(0, len(metrics), METRICS_MAX):
            self._client.log_batch(self._id, metrics=metrics[start : start + METRICS_MAX])
        self._client.set_tag(self._id, POINT, str(points[-1]["number"]))

    def write_samples(self, samples: Samples) -> None:
        text = json.dumps(samples["rows"], ensure_ascii=False, indent=1)
        self._client.log_text(self._id, text, f"samples/step_{samples['step']:06d}.json")

    def end(self, end: End) -> None:
        if end["card"]:
            self._client.set_tag(self._id, "mlflow.note.content", end["card"][:NOTE_CHARS_MAX])
        self._client.set_terminated(self._id, status=STATUS[end["status"]])

    def pause(self) -> None:
        """Nothing is held back."""

    def _fresh(self, point: Point) -> dict[str, float]:
        named = {NOT_IN_NAMES.sub("_", name): value for name, value in point["metrics"].items()}
        step = point["step"]
        return {name: value for name, value in named.items() if not self._has(name, step)}

    def _has(self, name: str, step: int) -> bool:
        if step > self._last_steps.get(name, -1):
            return False
        # Points outside loops may come after those of later steps.
        if name not in self._all_steps:
            history = self._client.get_metric_history(self._id, name)
            self._all_steps[name] = {metric.step for metric in history}
        return step in self._all_steps[name]

    def _experiment_id(self) -> str:
        found = self._client.get_experiment_by_name(self._experiment)
        if found is None:
            return self._client.create_experiment(self._experiment)
        if found.lifecycle_stage == "deleted":
            raise TrackerError(
                f"Cannot use MLflow's experiment '{self._experiment}' because it was deleted. "
                "Fix: restore it, or name a different `experiment`"
            )
        return found.experiment_id

    def _find(self, experiment: str, uid: str) -> str | None:
        found = self._client.search_runs([experiment], filter_string=f"tags.`{UID}` = '{uid}'")
        return found[0].info.run_id if found else None

    def _create(self, experiment: str) -> str:
        run, parent = self._run, self._run["parent"]
        tags = {UID: run["uid"], "holdfast.run": run["id"], "holdfast.dir": run["dir"]}
        if parent:
            tags["holdfast.parent"] = f"{parent['id']}, up to round {parent['round']}"
            linked = self._find(experiment, parent["uid"]) if parent["uid"] else None
            if linked:
                tags["mlflow.parentRunId"] = linked
        start = min(run["created_ms"], int(time.time() * 1000))
        created = self._client.create_run(
            experiment, start_time=start, tags=tags, run_name=run["id"]
        )
        return created.info.run_id

    def _log_params(self, known: set[str]) -> None:
        """What MLflow has stays: a setting that a resume has changed is in the run's journal."""
        named = {NOT_IN_NAMES.sub("_", name): v for name, v in flat(self._run["config"]).items()}
        params = [
            ENTITIES.Param(name, str(value)[:VALUE_CHARS_MAX])
            for name, value in named.items()
            if name not in known
        ]
        for start in range(0, len(params), PARAMS_MAX):
            self._client.log_batch(self._id, params=params[start : start + PARAMS_MAX])
