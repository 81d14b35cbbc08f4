"""A reward function tried on its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from fake_engine import PACKAGES
from reward_files import PROCESS, items, outcomes


def tried(file: Path, name: str, *lines: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "holdfast_worker.rewards.try_function", f"{file}:{name}"),
            *("--process", json.dumps(PROCESS), "--timeout-ms", "500"),
        ],
        input="\n".join(lines),
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGES)},
    )


def test_try_function_writes_one_result_with_its_time_for_each_line(file: Path) -> None:
    run = tried(file, "length", *(json.dumps(item) for item in items("a", "bb")))
    said, *results, last = [json.loads(line) for line in run.stdout.splitlines()]
    assert last == {"leftover": None}
    assert (said["style"], said["unit"]) == ("holdfast", "sample")
    assert (run.returncode, outcomes(results)) == (0, [("0", "ok", 0.1), ("1", "ok", 0.2)])
    assert all(result["ms"] >= 0 for result in results)
    assert "noise" in run.stderr


def test_try_function_says_what_calls_leave_behind(tmp_path: Path) -> None:
    path = tmp_path / "leaves.py"
    path.write_text(
        "import threading, time\n"
        "def leaves(*, completion):\n"
        "    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
        "    return 1\n"
    )
    run = tried(path, "leaves", json.dumps(items("a")[0]))
    assert (
        "leaves threads (Thread-1 (sleep)) behind"
        in json.loads(run.stdout.splitlines()[-1])["leftover"]
    )


def test_try_function_says_what_it_cannot_read(file: Path) -> None:
    run = tried(file, "length", "[1]")
    assert (run.returncode, run.stdout.count("\n")) == (2, 1)
    assert "Cannot read line 1" in run.stderr
    run = tried(file, "no_such", json.dumps(items("a")[0]))
    assert run.returncode == 2 and "has no function 'no_such'" in run.stderr
