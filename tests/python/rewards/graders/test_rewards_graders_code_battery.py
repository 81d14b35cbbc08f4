"""Hostile programs in both sandboxes, through the reward pool as in a run: each is bounded, named,
leaves nothing and never scores, and the next program of the same process gets its right verdict.
CI runs a part; HOLDFAST_TEST_WHOLE=true runs all.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from code_settings import code_settings, fenced
from holdfast_worker.process_table import descendants
from holdfast_worker.rewards.exchange import FunctionSample
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.reward_code import RewardCode
from hostile_programs import SCRIPTS, WAITS, Bait, Hostile
from hostile_tested import TESTED

SECRET = "a secret of the battery 5f0c1a9e"
SOURCE = "holdfast_worker.rewards.graders.code_answer:grader"
WHOLE = os.environ.get("CI") != "true" or os.environ.get("HOLDFAST_TEST_WHOLE") == "true"
ALL = {**SCRIPTS, **TESTED}
# Of CI: one of each kind, none that takes its whole time.
PART = [
    *("memory_slowly", "huge_output", "reads_a_file_of_the_home", "opens_a_socket", "daemons"),
    *("ends_early", "js_forges_a_frame", "leaves_marks", "finds_marks"),
    *("equals_everything", "forges_the_verdict", "exits_when_called"),
]
NAMES = list(ALL) if WHOLE else PART
CALL_MS = 300_000


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture(scope="module")
def bait(tmp_path_factory: pytest.TempPathFactory, listener: socket.socket) -> Bait:
    directory = tmp_path_factory.mktemp("home")
    file = directory / "hub.json"
    file.write_text(SECRET)
    file.chmod(0o600)
    port = str(listener.getsockname()[1])
    return Bait(secret=SECRET, file=str(file), port=port, place=str(directory / "written"))


@pytest.fixture(scope="module", params=["process", "pyodide"])
def pool(request: pytest.FixtureRequest) -> Iterator[tuple[str, RewardPool]]:
    os.environ["BATTERY_SECRET"] = SECRET
    settings = code_settings(sandbox=request.param, memory_mib=160, case_timeout_ms=3_000)
    code = RewardCode(
        function=SOURCE,
        style="holdfast",
        settings=json.dumps(settings),
        env=(),
        memory_gib=None,
        cpu_s=None,
        file_mib=None,
        processes_max=1024,
        isolate=True,
    )
    pool = RewardPool(code, 1)
    yield request.param, pool
    pool.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_program_is_bounded_and_named_and_the_next_one_is_right(
    name: str, pool: tuple[str, RewardPool], bait: Bait, listener: socket.socket
) -> None:
    sandbox, rewards = pool
    hostile = ALL[name]
    result = graded(rewards, hostile.code, row_of(hostile, bait))
    ending = hostile.process if sandbox == "process" else hostile.pyodide
    if ending == WAITS:
        assert (result["outcome"], result["score"]) == ("timeout", None)
    else:
        assert (result["outcome"], result["error"], result["score"]) == ("ok", None, 0)
    assert not Path(bait.place).exists()
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert processes_of(rewards) == []
    ended = {key for key, share in result["metrics"].items() if share > 0}
    assert ended == ({ending} - {WAITS})
    honest = {"test_cases": [{"input": "ab", "output": "ba"}]}
    assert graded(rewards, "print(input()[::-1])", honest)["score"] == 1


def row_of(hostile: Hostile, bait: Bait) -> dict[str, Any]:
    if hostile.tests is not None:
        return {"test_list": [hostile.tests]}
    stdin = getattr(bait, hostile.stdin, "nothing")
    return {"test_cases": [{"input": stdin, "output": bait.secret}]}


def graded(rewards: RewardPool, code: str, row: dict[str, Any]) -> Any:
    item: FunctionSample = {
        "id": "0",
        "prompt": "",
        "completion": fenced(code),
        "columns": row,
    }
    (result,) = rewards.score([item], timeout_ms=CALL_MS)
    return result


def processes_of(rewards: RewardPool) -> list[int]:
    """Those below the process of the pool, its supervisor and the first of its namespace."""
    (popen,) = [process._popen for process in rewards._all]
    assert popen is not None
    deadline = time.monotonic() + 10
    while len(found := descendants(popen.pid)) > 2 and time.monotonic() < deadline:
        pass
    return found[2:]
