"""The reward pool with real processes and user code that misbehaves."""

import os
import time
from pathlib import Path

import pytest

from holdfast_worker.operation import UserCodeError
from holdfast_worker.rewards import pool_process
from holdfast_worker.rewards.process import NOTHING_TO_GRADE_BY
from reward_files import MakePool, carriers, items, outcomes


def test_score_gives_results_in_order_whatever_the_function_prints(
    pool_of: MakePool, file: Path
) -> None:
    results = pool_of(f"{file}:length").score(items("a", "bb", "ccc"), timeout_ms=5_000)
    assert outcomes(results) == [("0", "ok", 0.1), ("1", "ok", 0.2), ("2", "ok", 0.3)]


def test_score_takes_async_functions_dicts_and_alarms(pool_of: MakePool, file: Path) -> None:
    (result,) = pool_of(f"{file}:slow_length").score(items("four"), timeout_ms=5_000)
    assert (result["score"], result["metrics"]) == (4.0, {"words": 2.0, "deep": 0.5})
    assert outcomes(pool_of(f"{file}:alarmed").score(items("x"), timeout_ms=5_000)) == [
        ("0", "ok", 0.25)
    ]


def test_an_alarm_left_behind_does_not_kill_a_waiting_process(
    pool_of: MakePool, file: Path
) -> None:
    pool = pool_of(f"{file}:leaves_alarm", processes=1)
    before = pool.score(items("x"), timeout_ms=5_000)
    time.sleep(0.2)
    after = pool.score(items("x"), timeout_ms=5_000)
    assert [result["score"] for result in before + after] == [
        0,
        1,
    ]  # It counts on: the process is the same.


def test_one_bad_sample_costs_only_itself(pool_of: MakePool, file: Path, tmp_path: Path) -> None:
    sleep = "1000.25"
    work = items(
        "fine",
        "hang",
        "exit",
        "throw",
        "quit",
        "nan",
        "text",
        "fine",
        here=str(tmp_path / "here"),
        sleep=sleep,
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
    assert (
        results[3]["error"].startswith("KeyError: 'answer'")
        and "my_rewards.py" in results[3]["error"]
    )
    assert "holdfast_worker" not in results[3]["error"]
    assert not carriers(sleep)  # What the user's code had started, too.


def test_a_throw_is_tried_once_more(pool_of: MakePool, file: Path, tmp_path: Path) -> None:
    work = items("x", marker=str(tmp_path / "marker"))
    assert outcomes(pool_of(f"{file}:throws_once").score(work, timeout_ms=5_000)) == [
        ("0", "ok", 0.75)
    ]


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        (
            "import a_module_that_is_not_there",
            "f",
            "ModuleNotFoundError: No module named 'a_module_that_is_not_there'",
        ),
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
        ("def f(a, /): pass", "f", "because 'a' is positional-only"),
        (None, "f", "there is no such file"),
    ],
)
def test_a_function_that_cannot_be_imported_is_one_error_within_5_s(
    pool_of: MakePool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str | None,
    name: str,
    says: str,
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


def test_a_loop_in_every_call_ends_the_work_when_every_process_has_waited(
    pool_of: MakePool, file: Path
) -> None:
    pool = pool_of(f"{file}:endless")
    seen: list[int] = []
    with pytest.raises(UserCodeError) as caught:
        pool.score(items(*"x" * 400), timeout_ms=300, between=seen.append)
    assert str(caught.value).startswith(
        f"Cannot score with reward '{file}:endless': each of its first 4 calls took longer than 300 ms. Fix: "
    )
    assert max(seen) < 8


def test_calls_that_hang_after_one_that_did_not_cost_only_themselves(
    pool_of: MakePool, file: Path
) -> None:
    work = items("fine", *["hang"] * 6, "fine", here=os.devnull, sleep="1000.75")
    results = pool_of(f"{file}:by_text").score(work, timeout_ms=300)
    assert [result["outcome"] for result in results] == ["ok", *["timeout"] * 6, "ok"]


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


def test_a_sample_that_a_function_returns_none_for_is_none_is_asked_once_and_costs_only_itself(
    pool_of: MakePool, file: Path, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    results = pool_of(f"{file}:ungraded").score(
        items("none", "dict", "right", calls=str(calls)), timeout_ms=5_000
    )
    assert [(r["outcome"], r["score"], r["metrics"]) for r in results] == [
        ("none", None, {}),
        ("none", None, {}),
        ("ok", 0.9, {"right": 0.0}),
    ]
    assert [r["error"] for r in results] == [NOTHING_TO_GRADE_BY, NOTHING_TO_GRADE_BY, None]
    assert sorted(calls.read_text().split()) == ["dict", "none", "right"]


def test_what_a_grader_says_about_time_fails_samples_and_never_the_pool(
    pool_of: MakePool, tmp_path: Path
) -> None:
    file = tmp_path / "late.py"
    file.write_text(
        "from holdfast_worker.rewards.sandbox.started import OutOfTime\n"
        "def late(completion):\n    raise OutOfTime('the program waits')\n"
    )
    results = pool_of(f"{file}:late").score(items(*"abcdef"), timeout_ms=5_000)
    assert [(one["outcome"], one["error"]) for one in results] == 6 * [
        ("timeout", "the program waits")
    ]
