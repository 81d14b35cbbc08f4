"""The reward pool with real processes and user code that misbehaves."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_engine import PACKAGES, FakeEngine
from holdfast_worker.operation import UserCodeError
from holdfast_worker.rewards import pool_process
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.pool_process import INHERITED, INHERITED_PREFIXES
from holdfast_worker.rewards.process import NOTHING_TO_GRADE_BY, BadReturn, checked
from holdfast_worker.rewards.reward_code import RewardCode

SOURCE = '''
import asyncio, itertools, os, signal, subprocess, sys, time
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

CALLS = itertools.count()

def leaves_alarm(*, completion, **kw):
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.15)
    return next(CALLS)

def by_text(*, completion, row, **kw):
    """Does what the completion says."""
    if completion == "hang":
        subprocess.Popen(["sleep", row["sleep"]])
        Path(row["here"]).touch()
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

def ungraded(*, completion, row):
    with open(row["calls"], "a") as calls:
        print(completion, file=calls)
    return {"none": None, "dict": {"score": None, "right": None}, "right": {"score": 0.9, "right": False}}[completion]

def endless(**kw):
    while True:
        pass

def variables(**kw):
    return {"score": 1, **{name: 1 for name in os.environ}}

def burn(completion):
    from time import process_time
    began = process_time()
    while process_time() - began < float(completion):
        pass
    return 1

def limits(**kw):
    import resource
    kinds = {"data": resource.RLIMIT_DATA, "file": resource.RLIMIT_FSIZE, "cpu": resource.RLIMIT_CPU}
    return {"score": 1, **{name: resource.getrlimit(kind)[0] for name, kind in kinds.items()},
            "core": resource.getrlimit(resource.RLIMIT_CORE)[0]}



def of_columns(completion, answer, unit="none", *, columns=3):
    return {"score": float(completion == answer), "columns": columns, "has_unit": unit != "none"}
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "helper_beside.py").write_text("LENGTH = 10\n")
    path = tmp_path / "my_rewards.py"
    path.write_text(SOURCE)
    return path


PROCESS: dict[str, Any] = {
    **{"env": [], "memory_gib": 4, "cpu_s": 30, "file_mib": 64, "processes_max": 16, "isolate": True},
}
MakePool = Callable[..., RewardPool]


@pytest.fixture
def pool_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePool]:
    """A pool for a function; all are closed at the end."""
    monkeypatch.setenv("PYTHONPATH", str(PACKAGES))
    pools: list[RewardPool] = []

    def make(function: str, *, processes: int = 2, **process: Any) -> RewardPool:
        pools.append(RewardPool(RewardCode.of(function, {**PROCESS, **process}), processes))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def items(*completions: str, **row: Any) -> list[dict[str, Any]]:
    return [{"id": str(i), "prompt": "p", "completion": text, "row": row} for i, text in enumerate(completions)]


def carriers(argument: str) -> list[str]:
    """Processes that were started with this argument, as their command lines. Process ids say nothing: a reward has its
    own."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if argument in command:
            found.append(" ".join(command))
    return found


def outcomes(results: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
    return [(result["id"], result["outcome"], result["score"]) for result in results]


def test_score_gives_results_in_order_whatever_the_function_prints(pool_of: MakePool, file: Path) -> None:
    results = pool_of(f"{file}:length").score(items("a", "bb", "ccc"), timeout_ms=5_000)
    assert outcomes(results) == [("0", "ok", 0.1), ("1", "ok", 0.2), ("2", "ok", 0.3)]


def test_score_takes_async_functions_dicts_and_alarms(pool_of: MakePool, file: Path) -> None:
    (result,) = pool_of(f"{file}:slow_length").score(items("four"), timeout_ms=5_000)
    assert (result["score"], result["metrics"]) == (4.0, {"words": 2.0, "deep": 0.5})
    assert outcomes(pool_of(f"{file}:alarmed").score(items("x"), timeout_ms=5_000)) == [("0", "ok", 0.25)]


def test_an_alarm_left_behind_does_not_kill_a_waiting_process(pool_of: MakePool, file: Path) -> None:
    pool = pool_of(f"{file}:leaves_alarm", processes=1)
    before = pool.score(items("x"), timeout_ms=5_000)
    time.sleep(0.2)
    after = pool.score(items("x"), timeout_ms=5_000)
    assert [result["score"] for result in before + after] == [0, 1]  # It counts on: the process is the same.


def test_one_bad_sample_costs_only_itself(pool_of: MakePool, file: Path, tmp_path: Path) -> None:
    sleep = "1000.25"
    work = items(
        "fine", "hang", "exit", "throw", "quit", "nan", "text", "fine", here=str(tmp_path / "here"), sleep=sleep
    )
    results = pool_of(f"{file}:by_text").score(work, timeout_ms=400)
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
    assert not carriers(sleep)  # What the user's code had started, too.


def test_a_throw_is_tried_once_more(pool_of: MakePool, file: Path, tmp_path: Path) -> None:
    work = items("x", marker=str(tmp_path / "marker"))
    assert outcomes(pool_of(f"{file}:throws_once").score(work, timeout_ms=5_000)) == [("0", "ok", 0.75)]


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("import a_module_that_is_not_there", "f", "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"),
        ("def f(:", "f", "SyntaxError"),
        ("g = 1", "f", "has no function 'f'"),
        ("import os; os._exit(9)", "f", "ended the process (exit code 9)"),
        ("raise SystemExit(2)", "f", "SystemExit: 2"),
        ("import os\nif os.fork() == 0: 1 / 0\nos.wait()", "f", "has no function 'f'"),
        ("while True: pass", "f", "took longer than 2 s"),
        (
            "import os\nfor fd in range(3, 99):\n try: os.write(fd, b'1234567')\n except OSError: pass",
            "f",
            "answered for",
        ),
        ("def f(a, /): pass", "f", "takes 'a' by its place only"),
        (None, "f", "there is no such file"),
    ],
)
def test_a_function_that_cannot_be_imported_is_one_error_within_5_s(
    pool_of: MakePool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, name: str, says: str
) -> None:
    monkeypatch.setattr(pool_process, "IMPORT_TIMEOUT_S", 2.0)
    path = tmp_path / "broken.py"
    if text is not None:
        path.write_text(text)
    started = time.monotonic()
    with pytest.raises(UserCodeError) as caught:
        pool_of(f"{path}:{name}").score(items("a", "b"), timeout_ms=1_000)
    assert time.monotonic() - started < 5
    message = str(caught.value)
    assert message.startswith(f"Cannot import reward '{path}:{name}'")
    assert says in message and "holdfast_worker" not in message and "importlib" not in message


def test_a_function_takes_columns_of_its_row_by_name(pool_of: MakePool, file: Path) -> None:
    pool = pool_of(f"{file}:of_columns")
    assert pool.load()["needs"] == ["answer"]
    results = pool.score(items("4", answer="4", unit="m"), timeout_ms=5_000)
    assert (results[0]["score"], results[0]["metrics"]) == (1.0, {"columns": 3.0, "has_unit": 1.0})


def test_a_loop_in_every_call_ends_the_work_when_every_process_has_waited(pool_of: MakePool, file: Path) -> None:
    pool = pool_of(f"{file}:endless")
    seen: list[int] = []
    with pytest.raises(UserCodeError) as caught:
        pool.score(items(*"x" * 400), timeout_ms=300, between=seen.append)
    assert str(caught.value).startswith(
        f"Cannot score with reward '{file}:endless': each of its first 4 calls took longer than 300 ms. Fix: "
    )
    assert max(seen) < 8


def test_calls_that_hang_after_one_that_did_not_cost_only_themselves(pool_of: MakePool, file: Path) -> None:
    work = items("fine", *["hang"] * 6, "fine", here=os.devnull, sleep="1000.75")
    results = pool_of(f"{file}:by_text").score(work, timeout_ms=300)
    assert [result["outcome"] for result in results] == ["ok", *["timeout"] * 6, "ok"]


def test_user_code_inherits_the_usual_variables_and_those_that_its_reward_names(
    pool_of: MakePool, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "OMP_NUM_THREADS", "LC_ALL"):
        monkeypatch.setenv(name, "1")

    def seen(**process: Any) -> set[str]:
        (result,) = pool_of(f"{file}:variables", **process).score(items("x"), timeout_ms=5_000)
        return set(result["metrics"])

    usual = seen()
    assert {"PATH", "PYTHONPATH", "OMP_NUM_THREADS", "LC_ALL"} <= usual
    assert usual <= {*INHERITED, *(name for name in usual if name.startswith(INHERITED_PREFIXES))}
    assert seen(env=["HF_TOKEN", "NOT_THERE"]) - usual == {"HF_TOKEN"}


def test_cpu_time_is_that_of_one_call_and_a_limit_names_its_setting(pool_of: MakePool, file: Path) -> None:
    pool = pool_of(f"{file}:burn", processes=1, cpu_s=1)
    results = pool.score(items("0.7", "0.7", "1000"), timeout_ms=60_000)
    assert [result["outcome"] for result in results] == ["ok", "ok", "crash"]
    assert results[2]["error"].endswith("killed by SIGXCPU: it used more than 1 s of CPU time (cpu_s)")


def test_limits_that_are_null_are_none(pool_of: MakePool, file: Path) -> None:
    (result,) = pool_of(f"{file}:limits", memory_gib=None, file_mib=None, cpu_s=None).score(
        items("x"), timeout_ms=5_000
    )
    assert result["metrics"] == {"data": -1.0, "file": -1.0, "cpu": -1.0, "core": 0.0}


HELPED = """
import subprocess
HELPER = subprocess.Popen(["sleep", "1000.625"])

def helped(row):
    subprocess.Popen(["sleep", row["sleep"]])
    return HELPER.poll() is None
"""


def test_what_the_import_starts_stays_and_what_a_call_starts_ends_with_it(pool_of: MakePool, tmp_path: Path) -> None:
    (tmp_path / "helped.py").write_text(HELPED)
    pool = pool_of(f"{tmp_path}/helped.py:helped", processes=1)
    results = pool.score(items("x", "x", "x", sleep="1000.875"), timeout_ms=5_000)
    assert [result["score"] for result in results] == [1.0, 1.0, 1.0]
    assert not carriers("1000.875") and len(carriers("1000.625")) == 1
    pool.close()
    assert not carriers("1000.625")


def test_what_between_raises_ends_the_work(pool_of: MakePool, file: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"

    def stop(done: int) -> None:
        if here.exists():  # The code runs.
            raise InterruptedError

    started = time.monotonic()
    pool = pool_of(f"{file}:by_text")
    work = items("hang", "hang", here=str(here), sleep="1000.5")
    with pytest.raises(InterruptedError):
        pool.score(work, timeout_ms=60_000, between=stop)
    assert time.monotonic() - started < 5
    assert not carriers("1000.5")
    assert outcomes(pool.score(items("fine"), timeout_ms=5_000)) == [("0", "ok", 1.0)]


@pytest.mark.parametrize(
    "value", ["1", [1], float("inf"), {"metrics": {}}, {"score": "None"}, {"score": 1, "note": "good"}, {"right": None}]
)
def test_checked_refuses_what_is_no_score(value: Any) -> None:
    with pytest.raises(BadReturn):
        checked(value)


@pytest.mark.parametrize("value", [None, {"score": None}, {"score": None, "right": None, "metrics": None}])
def test_checked_takes_none_as_nothing_to_grade_by(value: Any) -> None:
    assert checked(value) == (None, {})


def test_a_sample_that_a_function_returns_none_for_is_none_is_asked_once_and_costs_only_itself(
    pool_of: MakePool, file: Path, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    results = pool_of(f"{file}:ungraded").score(items("none", "dict", "right", calls=str(calls)), timeout_ms=5_000)
    assert [(r["outcome"], r["score"], r["metrics"]) for r in results] == [
        ("none", None, {}),
        ("none", None, {}),
        ("ok", 0.9, {"right": 0.0}),
    ]
    assert [r["error"] for r in results] == [NOTHING_TO_GRADE_BY, NOTHING_TO_GRADE_BY, None]
    assert sorted(calls.read_text().split()) == ["dict", "none", "right"]


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
            args = {
                "function": f"{file}:length",
                "process": PROCESS,
                "shared": {"json": "{}"},
                "items": items("a", "bb"),
                "timeout_ms": 5_000,
            }
            (tmp_path / "bad.py").write_text("import nothing_like_this")
            error = await engine.call("score", {**args, "function": f"{tmp_path / 'bad.py'}:f"}, group="reward")
            assert [(f["cause"], f["exception"]) for f in error["failures"]] == [("user_code", "UserCodeError")]
            answer = await engine.call("score", args, group="reward")
            assert outcomes(answer["outputs"][0]["results"]) == [("0", "ok", 0.1), ("1", "ok", 0.2)]

    asyncio.run(asyncio.wait_for(run(), 60))
