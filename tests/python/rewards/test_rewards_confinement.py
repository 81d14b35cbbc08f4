"""
A battery of rewards that misbehave, each on the real pool between honest samples: it ends in time
with an outcome that has a name, no sample gets the reward of another, and nothing that it started
is left.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import hostile_rewards
from fake_engine import PACKAGES, FakeEngine
from holdfast_worker.linux import PR_SET_CHILD_SUBREAPER, prctl
from holdfast_worker.process_table import descendants, process_state
from holdfast_worker.rewards.confinement import isolation_works
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.reward_code import RewardCode
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import RewardProcess
from hostile_scores import OWN

FILE = Path(hostile_rewards.__file__)
SECRET = "a-secret-that-no-reward-may-see"
TIMEOUT_MS = 8_000
# Of four calls, two of them twice, with new processes between, on a machine with much else to do.
BOUND_S = 150.0
AT_ONCE = 6
PROCESS = {
    "env": ["OF_THE_REWARD"],
    "memory_gib": 0.25,
    "cpu_s": 30,
    "file_mib": 8,
    "processes_max": 16,
}
ISOLATED = isolation_works() is None
HONEST = ("1", "2", "3")

OK = ("ok", OWN)
NONE, ERROR, TIMEOUT, CRASH = ("none", None), ("error", None), ("timeout", None), ("crash", None)
BAD_RETURN, BAD_ANSWER = ("bad_return", None), ("bad_answer", None)

# Outcome and score; of several any. A second set: what it is without namespaces, where those make a
# difference.
BATTERY: dict[str, tuple[set[Any], ...]] = {
    "fork_returns": ({OK}, {OK}),
    "fork_child_raises": ({OK}, {OK}),
    "fork_in_native_code": ({OK}, {OK}),
    "forks_stay": ({OK}, {OK}),
    "fork_parent_ends": ({CRASH}, {CRASH}),
    "daemon": ({OK}, {OK}),
    "popen_left": ({OK}, {OK}),
    "pool_left": ({OK}, {OK}),
    "daemon_then_hang": ({TIMEOUT}, {TIMEOUT}),
    "fork_bomb": ({CRASH, TIMEOUT}, {CRASH, TIMEOUT}),
    "comet": ({OK}, {OK, TIMEOUT}),
    "end_at_once": ({CRASH},),
    "exit_in_python": ({ERROR},),
    "become_another": ({CRASH},),
    "segfault": ({CRASH},),
    "abort": ({CRASH},),
    "kill_itself": ({CRASH},),
    "kill_group": ({CRASH},),
    "kill_parent": ({OK}, {OK, CRASH}),
    "stop_parent": ({OK}, {OK}),
    "stop_itself": ({TIMEOUT},),
    "kill_everybody": ({OK}, {ERROR}),
    "trace_parent": ({OK}, {OK, CRASH}),
    "deaf": ({TIMEOUT},),
    "leave_alarm": ({OK},),
    "hang": ({TIMEOUT},),
    "sleep_long": ({TIMEOUT},),
    "hang_in_finalizer": ({TIMEOUT},),
    "hang_in_message": ({TIMEOUT},),
    "hang_in_number": ({TIMEOUT},),
    "hang_async": ({TIMEOUT},),
    "task_left": ({OK},),
    "task_that_stays": ({TIMEOUT},),
    "loop_closed": ({ERROR},),
    "write_everywhere": ({BAD_ANSWER},),
    "forge": ({BAD_ANSWER},),
    "forge_in_advance": ({BAD_ANSWER},),
    "forge_by_its_nonce": ({OK, BAD_ANSWER},),
    "forge_no_number": ({BAD_ANSWER},),
    "flood_the_answer": ({BAD_ANSWER},),
    "fork_forges": ({BAD_ANSWER}, {BAD_ANSWER}),
    "thread_forges": ({OK, BAD_ANSWER},),
    "thread_steals": ({OK},),
    "thread_answers": ({OK}, {OK}),
    "begin_and_sleep": ({TIMEOUT},),
    "begin_and_return": ({BAD_ANSWER},),
    "print_into_the_answer": ({BAD_ANSWER},),
    "close_everything": ({CRASH},),
    "close_and_open": ({CRASH},),
    "nothing": ({NONE},),
    "text": ({BAD_RETURN},),
    "infinity": ({BAD_RETURN},),
    "not_a_number": ({BAD_RETURN},),
    "huge_integer": ({BAD_RETURN},),
    "tensor": ({BAD_RETURN},),
    "generator": ({BAD_RETURN},),
    "metrics_no_dict": ({BAD_RETURN},),
    "million_metrics": ({BAD_RETURN},),
    "huge_metric_name": ({OK},),
    "huge_message": ({ERROR},),
    "unprintable_message": ({ERROR},),
    "no_message": ({ERROR},),
    "interrupt": ({ERROR},),
    "recursion": ({ERROR},),
    "memory_at_once": ({ERROR},),
    "memory_slowly": ({ERROR},),
    "shared_memory": ({CRASH}, {CRASH}),
    "memory_as_files": ({CRASH}, {CRASH}),
    "memory_of_the_system": ({ERROR},),
    "closed_files": ({ERROR}, {OK, ERROR}),
    "mapped_files": ({CRASH}, {CRASH}),
    "fill_the_disk": ({ERROR},),
    "print_much": ({OK},),
    "no_descriptors": ({OK},),
    "find_secrets": ({("ok", 0.0)}, {("ok", 0.0), ("ok", 1.0)}),
    "read_hub": ({("ok", 1.0)}, {("ok", 1.0)}),
    "thread_left": ({OK},),
    "at_exit": ({OK},),
    "change_directory": ({OK},),
    "change_modules": ({OK},),
    "change_encoding": ({BAD_ANSWER},),
    "close_output": ({OK},),
}
CASES = [
    (name, isolate) for name, wanted in BATTERY.items() for isolate in (True, False)[: len(wanted)]
]
# These may cost the next sample its score. They cannot change it.
HARM_THE_NEXT = {"thread_forges", "forge_by_its_nonce"}


def tried(name: str, isolate: bool, place: Path) -> dict[str, Any]:
    """
    One honest sample, the one that misbehaves, two honest ones, in one process. What is left is
    looked for before the pool closes.
    """
    number = list(BATTERY).index(name)
    sleep = f"1000.{number}{int(isolate)}"
    hub = place / f"{name}-{isolate}.hub.json"
    os.close(os.open(hub, os.O_WRONLY | os.O_CREAT, 0o600))
    hub.write_text(json.dumps({"token": SECRET}))
    row = {
        "sleep": sleep,
        "file": str(place / f"{name}-{isolate}"),
        "secret": SECRET,
        "hub": str(hub),
    }
    work = [
        {"id": text, "prompt": "p", "completion": text, "columns": row}
        for text in (HONEST[0], name, HONEST[1], HONEST[2])
    ]
    pool = RewardPool(
        RewardCode.of(
            f"{FILE}:score", decode(RewardProcess, {**PROCESS, "isolate": isolate}), style=None
        ),
        1,
    )
    started = time.monotonic()
    try:
        results = pool.score(work, timeout_ms=TIMEOUT_MS)
        seconds = time.monotonic() - started
        popen = pool._all[0]._popen
        below = descendants(popen.pid) if popen else []
        left = [pid for pid in below if process_state(pid) != "dead"]
    finally:
        pool.close()
    return {"results": {one["id"]: one for one in results}, "seconds": seconds, "left": len(left)}


@pytest.fixture(scope="module")
def battery(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[tuple[str, bool], Future[dict[str, Any]]]]:
    """All of them, several at a time."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # What escapes its pool is found below this process.
    place = tmp_path_factory.mktemp("battery")
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(AT_ONCE) as threads:
        patch.setenv("PYTHONPATH", str(PACKAGES))
        patch.setenv("HF_TOKEN", SECRET)
        patch.setenv("OF_THE_REWARD", "seen")
        yield {case: threads.submit(tried, *case, place) for case in CASES}


@pytest.mark.parametrize(("name", "isolate"), CASES)
def test_a_hostile_reward_harms_nobody_but_itself(battery: Any, name: str, isolate: bool) -> None:
    done = battery[name, isolate].result()
    results = done["results"]
    wanted = BATTERY[name][0 if isolate and ISOLATED else -1]
    assert (results[name]["outcome"], results[name]["score"]) in wanted, results[name]
    assert len(results[name]["error"] or "") <= 4_100
    for text in HONEST:
        honest = results[text]["outcome"], results[text]["score"]
        assert honest == ("ok", float(text)) or (name in HARM_THE_NEXT and honest[1] is None), (
            results
        )
    assert done["seconds"] < BOUND_S
    assert done["left"] <= 2, done  # The process, and the first of its namespace.


def test_nothing_is_left_of_all_of_them(battery: Any) -> None:
    for future in battery.values():
        future.result()
    left = [pid for pid in descendants(os.getpid()) if process_state(pid) != "dead"]
    assert not left, [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left]


def test_the_reward_role_goes_on_after_hostile_samples_and_leaves_nothing(tmp_path: Path) -> None:
    """
    Through a real agent: what fails is a sample, never the operation, and the next operation is as
    if nothing was.
    """
    row = {"sleep": "1000.99", "file": str(tmp_path / "filled"), "secret": SECRET}
    names = ["1", "daemon", "forge_in_advance", "fork_returns", "hang", "daemon_then_hang", "2"]
    process = {**PROCESS, "env": [], "isolate": True}

    def args(completions: list[str]) -> dict[str, Any]:
        work = [
            {"id": text, "completion": text, "tokens": 1, "token_ids": [7], "stop": "stop"}
            for text in completions
        ]
        shared = {"json": json.dumps({"prompt": "p", "columns": row})}
        how = {
            "function": f"{FILE}:score",
            "style": None,
            "settings": None,
            "process": process,
            "timeout_ms": 1_500,
        }
        return {**how, "shared": shared, "items": work}

    async def run() -> None:
        async with FakeEngine(tmp_path) as engine:
            agent = engine.start_agent()
            await engine.start_group(
                "reward", module="holdfast_worker.rewards.worker", spec={"processes": 2}
            )
            scored = (await engine.call("score", args(names), group="reward"))["outputs"][0][
                "results"
            ]
            assert [one["outcome"] for one in scored] == [
                "ok",
                "ok",
                "bad_answer",
                "ok",
                "timeout",
                "timeout",
                "ok",
            ]
            again = (await engine.call("score", args(["3", "4"]), group="reward"))["outputs"][0][
                "results"
            ]
            assert [(one["outcome"], one["score"]) for one in again] == [("ok", 3.0), ("ok", 4.0)]
            await engine.send({"type": "shutdown"})
            assert await asyncio.to_thread(agent.wait) == 0

    asyncio.run(asyncio.wait_for(run(), BOUND_S))
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in commands if b"1000.99" in command]
