"""
trackio: a database in a directory, or a server. Every row has an id made of its point, and trackio
takes a row with a known id once.
"""

from __future__ import annotations

import importlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast_worker.trackers.sink import End, Opened, Point, Run, Samples


class TrackioSink:
    def __init__(self, settings: dict[str, Any], run: Run) -> None:
        self._project = settings["project"]
        self._uri: str | None = settings["uri"]
        self._run = run
        self._dir = settings["dir"] or os.environ.get("TRACKIO_DIR") or f"{run['home']}/trackio"
        self._storage: Any = None
        self._remote: Any = None
        self._last: dict[str, Any] | None = None

    def open(self) -> Opened:
        Path(self._dir).mkdir(parents=True, exist_ok=True)
        os.environ["TRACKIO_DIR"] = self._dir  # Read when it is imported.
        if self._uri is None:
            self._storage = importlib.import_module("trackio.sqlite_storage").SQLiteStorage
            self._storage.init_db(self._project)
            where = f"TRACKIO_DIR={self._dir} trackio show --project {self._project}"
            return Opened(0, where)
        client: Any = importlib.import_module("trackio.remote_client")
        token = os.environ.get("TRACKIO_WRITE_TOKEN")
        self._remote = client.RemoteClient(self._uri, write_token=token)
        return Opened(0, self._uri)

    def write(self, points: list[Point]) -> None:
        rows = [self._row(point) for point in points]
        self._last = rows[-1]
        self._log(rows)

    def write_samples(self, samples: Samples) -> None:
        """As text: a table of trackio is a file of its server."""
        text = json.dumps(samples["rows"], ensure_ascii=False)
        step = samples["step"]
        row = {"metrics": {"samples": text}, "step": step, "log_id": self._id(f"samples/{step}")}
        self._log([{**row, "timestamp": datetime.now(UTC).isoformat()}])

    def end(self, end: End) -> None:
        """trackio takes a configuration with a row only: a known one changes nothing else."""
        if end["card"] and self._last:
            self._log([self._last], {**self._config(), "model_card": end["card"]})

    def pause(self) -> None:
        """Nothing is held back."""

    def _row(self, point: Point) -> dict[str, Any]:
        return {
            "metrics": point["metrics"],
            "step": point["step"],
            "log_id": self._id(str(point["number"])),
            "timestamp": datetime.fromtimestamp(point["at_ms"] / 1000, UTC).isoformat(),
        }

    def _id(self, of: str) -> str:
        return f"{self._run['uid']}/{of}"

    def _config(self) -> dict[str, Any]:
        parent = self._run["parent"]
        link = {"parent": parent["id"], "parent_round": parent["round"]} if parent else {}
        return {**self._run["config"], "holdfast": {"run": self._run["id"], **link}}

    def _log(self, rows: list[dict[str, Any]], config: dict[str, Any] | None = None) -> None:
        run = {"project": self._project, "run": self._run["id"], "run_id": self._run["uid"]}
        run_config = config or self._config()
        if self._storage is not None:
            self._storage.bulk_log(
                **run,
                metrics_list=[row["metrics"] for row in rows],
                steps=[row["step"] for row in rows],
                timestamps=[row["timestamp"] for row in rows],
                log_ids=[row["log_id"] for row in rows],
                config=run_config,
            )
            return
        logs = [{**run, **row, "config": run_config} for row in rows]
        self._remote.predict(api_name="/bulk_log", logs=logs, hf_token=None)
