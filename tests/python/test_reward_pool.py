"""The reward pool with real processes and user code that misbehaves."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_engine import PACKAGES, FakeEngine, until_dead
from holdfast_worker.operation import UserCodeError
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.process import BadReturn, checked

SOURCE = '''
import asyncio, os, signal, subprocess, sys, time
from dataclasses import dataclass
from pathlib import Path
from helper_beside import LENGTH

@dataclass
class Parsed:
    text: str

def length(*, prompt, completion, row, tokens=None, **kw):
    print("noise " * 1000)
    os.write(1, b"\\x00" * 100)
    return len(Parsed(completion).text) / LENGTH

async def slow_length(*, completion):
    await asyncio.sleep(0.001)
    return {"score": len(completion), "words": 2, "metrics": {"deep": 0.5}}

def alarmed(*, completion, **kw):
    def ring(*_):
        raise TimeoutError("rang")
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        time.sleep(5)
    except TimeoutError:
        return 0.25

def leaves_alarm(*, completion, **kw):
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.15)
    return 1

def by_text(*, completion, row, **kw):
    """Does what the completion says."""
    if completion == "hang":
        child = subprocess.Popen(["sleep", "1000"])
        Path(row["pid_file"]).write_text(str(child.pid))
        while True:
            pass
    if completion == "exit":
        os._exit(5)
    if completion == "throw":
        raise KeyError("answer")
    if completion == "quit":
        sys.exit(1)
    if completion == "nan":
        return float("nan")
    if completion == "text":
        return "1"
    return 1.0

def throws_once(*, row, **kw):
    marker = Path(row["marker"])
    if not marker.exists():
        marker.touch()
        raise RuntimeError("the first time")
    return 0.75

def pid(**kw):
    return os.getpid()
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "helper_beside.py").write_text("LENGTH = 10\n")
    path = tmp_path / "my_rewards.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[RewardPool]:
    monkeypatch.setenv("PYTHONPATH", str(PACKAGES))
    pool = RewardPool(2)
    yield pool
    pool.close()


def items(*completions: str, **row: Any) -> list[dict[str, Any]]:
    return [{"id": str(i), "prompt": "p", "completion": text, "row": row} for i, text in enumerate(completions)]


def outcomes(results: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
    return [(result["id"], result["outcome"], result["score"]) for result in results]


def test_score_gives_results_in_order_whatever_the_function_prints(pool: RewardPool, file: Path) -> None:
    results = pool.score(f"{file}:length", items("a", "bb", "ccc"), timeout_ms=5_000)
    assert outcomes(results) == [("0", "ok", 0.1), ("1", "ok", 0.2), ("2", "ok", 0.3)]


def test_score_takes_async_functions_dicts_and_alarms(pool: RewardPool, file: Path) -> None:
    (result,) = pool.score(f"{file}:slow_length", items("four"), timeout_ms=5_000)
    assert (result["score"], result["metrics"]) == (4.0, {"words": 2.0, "deep": 0.5})
    assert outcomes(pool.score(f"{file}:alarmed", items("x"), timeout_ms=5_000)) == [("0", "ok", 0.25)]


def test_an_alarm_left_behind_does_not_kill_a_waiting_process(pool: RewardPool, file: Path) -> None:
    before = pool.score(f"{file}:pid", items("x", "x", "x"), timeout_ms=5_000)
    pool.score(f"{file}:leaves_alarm", items("x", "x", "x"), timeout_ms=5_000)
    time.sleep(0.2)
    after = pool.score(f"{file}:pid", items("x", "x", "x"), timeout_ms=5_000)
    assert {r["score"] for r in after} <= {r["score"] for r in before}


def test_one_bad_sample_costs_only_itself(pool: RewardPool, file: Path, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    work = items("fine", "hang", "exit", "throw", "quit", "nan", "text", "fine", pid_file=str(pid_file))
    results = pool.score(f"{file}:by_text", work, timeout_ms=400)
    assert [result["outcome"] for result in results] == [
        "ok",
        "timeout",
        "crash",
        "error",
        "error",
        "bad_return",
        "bad_return",
        "ok",
    ]
    assert [result["score"] for result in results] == [1.0, None, None, None, None, None, None, 1.0]
    assert results[1]["ms"] < 3_000
    assert results[2]["error"] == "the process ended during the call: exit code 5"
    assert results[3]["error"].startswith("KeyError: 'answer'") and "my_rewards.py" in results[3]["error"]
    assert "holdfast_worker" not in results[3]["error"]
    asyncio.run(until_dead([int(pid_file.read_text())]))  # What the user's code had started, too.


def test_a_throw_is_tried_once_more(pool: RewardPool, file: Path, tmp_path: Path) -> None:
    work = items("x", marker=str(tmp_path / "marker"))
    assert outcomes(pool.score(f"{file}:throws_once", work, timeout_ms=5_000)) == [("0", "ok", 0.75)]


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("import a_module_that_is_not_there", "f", "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"),
        ("def f(:", "f", "SyntaxError"),
        ("g = 1", "f", "has no function 'f'"),
        ("import os; os._exit(9)", "f", "ended the process (exit code 9)"),
        ("raise SystemExit(2)", "f", "SystemExit: 2"),
        (None, "f", "there is no such file"),
    ],
)
def test_a_function_that_cannot_be_imported_is_one_error_within_5_s(
    pool: RewardPool, tmp_path: Path, text: str | None, name: str, says: str
) -> None:
    path = tmp_path / "broken.py"
    if text is not None:
        path.write_text(text)
    started = time.monotonic()
    with pytest.raises(UserCodeError) as caught:
        pool.score(f"{path}:{name}", items("a", "b"), timeout_ms=1_000)
    assert time.monotonic() - started < 5
    message = str(caught.value)
    assert message.startswith(f"Cannot import reward '{path}:{name}'")
    assert says in message and "holdfast_worker" not in message and "importlib" not in message


def test_what_between_raises_ends_the_work(pool: RewardPool, file: Path, tmp_path: Path) -> None:
    def stop(done: int) -> None:
        if (tmp_path / "p").exists():  # The code runs.
            raise InterruptedError

    started = time.monotonic()
    with pytest.raises(InterruptedError):
        pool.score(
            f"{file}:by_text", items("hang", "hang", pid_file=str(tmp_path / "p")), timeout_ms=60_000, between=stop
        )
    assert time.monotonic() - started < 5
    assert outcomes(pool.score(f"{file}:length", items("a"), timeout_ms=5_000)) == [("0", "ok", 0.1)]


@pytest.mark.parametrize(
    "value", [None, "1", [1], float("inf"), {"metrics": {}}, {"score": None}, {"score": 1, "note": "good"}]
)
def test_checked_refuses_what_is_no_score(value: Any) -> None:
    with pytest.raises(BadReturn):
        checked(value)


def test_checked_takes_every_kind_of_number() -> None:
    import numpy

    assert [checked(value)[0] for value in (1, 0.5, True, numpy.float32(0.25), numpy.array(2))] == [
        1.0,
        0.5,
        1.0,
        0.25,
        2.0,
    ]


def tried(file: Path, name: str, *lines: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast_worker.rewards.try_function", f"{file}:{name}", "--timeout-ms", "500"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGES)},
    )


def test_try_function_writes_one_result_with_its_time_for_each_line(file: Path) -> None:
    run = tried(file, "length", *(json.dumps(item) for item in items("a", "bb")))
    results = [json.loads(line) for line in run.stdout.splitlines()]
    assert (run.returncode, outcomes(results)) == (0, [("0", "ok", 0.1), ("1", "ok", 0.2)])
    assert all(result["ms"] >= 0 for result in results)
    assert "noise" in run.stderr


def test_try_function_says_what_it_cannot_read(file: Path) -> None:
    run = tried(file, "length", "[1]")
    assert (run.returncode, run.stdout) == (2, "")
    assert "Cannot read line 1" in run.stderr
    run = tried(file, "no_such", json.dumps(items("a")[0]))
    assert run.returncode == 2 and "has no function 'no_such'" in run.stderr


def test_the_reward_role_scores_through_an_agent_and_survives_a_broken_file(tmp_path: Path, file: Path) -> None:
    async def run() -> None:
        async with FakeEngine(tmp_path) as engine:
            engine.start_agent()
            state = await engine.start_group("reward", module="holdfast_worker.rewards.worker", spec={"processes": 2})
            assert state["info"]["processes"] == 2
            args = {"function": f"{file}:length", "items": items("a", "bb"), "timeout_ms": 5_000}
            (tmp_path / "bad.py").write_text("import nothing_like_this")
            error = await engine.call("score", {**args, "function": f"{tmp_path / 'bad.py'}:f"}, group="reward")
            assert [(f["cause"], f["exception"]) for f in error["failures"]] == [("user_code", "UserCodeError")]
            answer = await engine.call("score", args, group="reward")
            assert outcomes(answer["outputs"][0]["results"]) == [("0", "ok", 0.1), ("1", "ok", 0.2)]

    asyncio.run(asyncio.wait_for(run(), 60))
