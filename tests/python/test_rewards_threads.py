"""Threads that a call of a reward leaves behind cost its process, and change no other call."""

from pathlib import Path

import pytest

from reward_files import MakePool, items

SOURCE = """
import asyncio, concurrent.futures, itertools, threading, time

BESIDE = threading.Thread(target=time.sleep, args=(1000,), daemon=True)
BESIDE.start()
CALLS = itertools.count()


def leaves(*, completion):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True, name=completion).start()
    return next(CALLS)


def joins(*, completion):
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(len, completion))
    return next(CALLS)


async def resolves(*, completion):
    await asyncio.to_thread(time.sleep, 0)
    return next(CALLS)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "threads.py"
    path.write_text(SOURCE)
    return path


def test_a_thread_that_a_call_leaves_costs_the_process(
    pool_of: MakePool, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results = pool_of(f"{file}:leaves", processes=1).score(items("a", "b"), timeout_ms=5_000)
    assert [one["score"] for one in results] == [0, 0]  # Each in a new process.
    said = capfd.readouterr().err
    assert said.count("leaves threads (a) behind: its process is replaced") == 1


@pytest.mark.parametrize("name", ["joins", "resolves"])
def test_threads_that_end_with_their_call_or_began_before_it_cost_nothing(
    pool_of: MakePool, file: Path, name: str
) -> None:
    results = pool_of(f"{file}:{name}", processes=1).score(items("a", "b"), timeout_ms=5_000)
    assert [one["score"] for one in results] == [0, 1]
