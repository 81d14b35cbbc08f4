"""Runs code in the environment of trackers, whose clients the tests' own environment lacks."""

import json
import os
import subprocess
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
RUN = {
    "id": "a",
    "uid": "a-12345678",
    "name": "a",
    "created_ms": 1_700_000_000_000,
    "config": {"seed": 1, "model": {"path": "/m"}},
    "parent": None,
}
BEFORE = """
import json
from holdfast_worker.trackers.sink import sink_of

run = json.loads(RUN)
def sink(**settings):
    return sink_of(settings, run)
def point(number, step=None, **metrics):
    return {"number": number, "step": step or number, "round": None, "at_ms": number * 1000,
            "metrics": metrics or {"reward/mean": number / 2}}
def say(value):
    print("SAID" + json.dumps(value))
"""


def in_trackers(directory: Path, code: str) -> list[Any]:
    """What `code` says by `say`. It has `sink(**settings)`, `point(number)` and `run`."""
    run = {**RUN, "dir": str(directory), "home": str(directory)}
    text = f"RUN = {json.dumps(run)!r}\nDIR = {str(directory)!r}\n{BEFORE}\n{textwrap.dedent(code)}"
    ended = subprocess.run(
        [os.environ["HOLDFAST_TEST_TRACKERS_PYTHON"], "-c", text],
        env={**os.environ, "PYTHONPATH": str(ROOT / "workers/python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    return [json.loads(line.removeprefix("SAID")) for line in lines if line.startswith("SAID")]
