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


POOL = concurrent.futures.ThreadPoolExecutor(2)
LOOP = asyncio.new_event_loop()
threading.Thread(target=LOOP.run_forever, daemon=True).start()


def pools(*, completion):
    list(POOL.map(len, completion))
    return next(CALLS)


def loops(*, completion):
    asyncio.run_coroutine_threadsafe(asyncio.to_thread(len, completion), LOOP).result()
    return next(CALLS)


def bars(*, completion):
    from tqdm import tqdm
    list(tqdm(completion))
    return next(CALLS)


def waits(*, completion):
    timer = threading.Timer(1000, print)
    timer.name = "timer"
    timer.start()
    return next(CALLS)


def later(*, completion):
    POOL.submit(time.sleep, 1000)
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


@pytest.mark.parametrize(
    ("name", "thread"),
    [("leaves", "a"), ("waits", "timer"), ("later", "ThreadPoolExecutor-0_0")],
)
def test_a_thread_that_a_call_leaves_costs_the_process(
    pool_of: MakePool, file: Path, capfd: pytest.CaptureFixture[str], name: str, thread: str
) -> None:
    pool = pool_of(f"{file}:{name}", processes=1)
    results = pool.score(items("a", "b"), timeout_ms=5_000)
    assert [one["score"] for one in results] == [0, 0]  # Each in a new process.
    assert (
        pool.left_behind
        and f"leaves threads ({thread}) behind: its process is replaced" in pool.left_behind
    )
    assert capfd.readouterr().err.count(pool.left_behind) == 1


@pytest.mark.parametrize("name", ["joins", "resolves", "pools", "loops", "bars"])
def test_threads_that_end_with_their_call_or_began_before_it_cost_nothing(
    pool_of: MakePool, file: Path, name: str
) -> None:
    results = pool_of(f"{file}:{name}", processes=1).score(items("a", "b"), timeout_ms=5_000)
    assert [one["score"] for one in results] == [0, 1]
