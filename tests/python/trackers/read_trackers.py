"""
What trackers have of a run, by each tracker's own reader: `read_trackers.py NAME DIR_OR_URI RUN`
prints {runs, values: {metric: [[step, value], ...]}} in the order of the tracker.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

Values = dict[str, list[tuple[int, float]]]


def tensorboard(where: str, run: str) -> tuple[list[str], Values]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(where, size_guidance={"scalars": 0})
    events.Reload()
    tags = events.Tags()["scalars"]
    return [run], {tag: [(one.step, one.value) for one in events.Scalars(tag)] for tag in tags}


def mlflow(where: str, run: str) -> tuple[list[str], Values]:
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=where, registry_uri="file:/nowhere")
    experiment = client.get_experiment_by_name("holdfast")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    this_run = next(one for one in runs if one.data.tags["holdfast.run"] == run)
    history = {
        name: [
            (one.step, one.value) for one in client.get_metric_history(this_run.info.run_id, name)
        ]
        for name in this_run.data.metrics
    }
    return [one.data.tags["holdfast.run"] for one in runs], history


def wandb(where: str, run: str) -> tuple[list[str], Values]:
    from holdfast_worker.trackers.wandb_file import history

    files = sorted(Path(where).glob(f"wandb/offline-run-*/run-{run}-*.wandb"))
    values: Values = {}
    for file in files:
        for row in history(file):
            for name, value in row.items():
                if not name.startswith("_") and name != "global_step":
                    values.setdefault(name, []).append((row["global_step"], value))
    return sorted({file.stem.removeprefix("run-").rpartition("-")[0] for file in files}), values


def trackio(where: str, run: str) -> tuple[list[str], Values]:
    os.environ["TRACKIO_DIR"] = where
    from trackio.sqlite_storage import SQLiteStorage

    records = SQLiteStorage.get_run_records("holdfast")
    record = next(one for one in records if one["name"] == run)
    values: Values = {}
    for row in SQLiteStorage.get_logs("holdfast", run_id=record["id"]):
        for name, value in row.items():
            if name not in ("step", "timestamp", "samples"):
                values.setdefault(name, []).append((row["step"], value))
    return [str(one["name"]) for one in records], values


READERS: dict[str, Callable[[str, str], tuple[list[str], Values]]] = {
    "tensorboard": tensorboard,
    "mlflow": mlflow,
    "wandb": wandb,
    "trackio": trackio,
}

if __name__ == "__main__":
    name, where, run = sys.argv[1:]
    runs, values = READERS[name](where, run)
    print(json.dumps({"runs": runs, "values": values}))
