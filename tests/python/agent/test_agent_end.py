"""How an agent ends its ranks, and what is left when it is ended itself."""

import os
import signal
import time
from pathlib import Path

import pytest

from fake_engine import FakeEngine, alive, until_dead
from served_agent import exit_code, ready_with_children, served

END_S = 5.0  # The promise: no process outlives engine and agent by more.


def test_stop_group_ends_its_processes_and_says_so(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        all_pids = await ready_with_children(engine)
        await engine.send(
            {"type": "stop_group", "group": "trainer", "generation": 1, "grace_ms": 2_000}
        )
        state = await engine.next("group")
        assert (state["state"], state["ranks"][0]["exit_code"]) == ("stopped", 0)
        assert not any(map(alive, all_pids))

    served(tmp_path, test)


@pytest.mark.parametrize("way", ["stop_group", "shutdown", "rank_killed"])
def test_what_detaches_itself_from_a_rank_ends_with_it_or_with_the_agent_at_the_latest(
    tmp_path: Path, way: str
) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        rank = (await engine.start_group())["ranks"][0]["pid"]
        escaped = (await engine.call("escape"))["outputs"][0]["pid"]
        assert alive(escaped)
        if way == "stop_group":
            await engine.send(
                {"type": "stop_group", "group": "trainer", "generation": 1, "grace_ms": 0}
            )
            await engine.next("group")
        if way == "rank_killed":
            os.kill(rank, signal.SIGKILL)
            await engine.next("group")
        if way != "stop_group":
            await engine.send({"type": "shutdown"})
            await exit_code(engine)
        assert not alive(escaped)

    served(tmp_path, test)


@pytest.mark.parametrize("way", ["shutdown", "SIGTERM"])
def test_agent_told_to_end_ends_its_ranks_first_even_busy_ones_and_exits_0(
    tmp_path: Path, way: str
) -> None:
    async def test(engine: FakeEngine) -> None:
        agent = engine.start_agent(HOLDFAST_PREEMPT_GRACE_S="0.3")
        all_pids = await ready_with_children(engine)
        await engine.task("hang")
        await engine.next("progress")
        if way == "shutdown":
            await engine.send({"type": "shutdown"})
        else:
            agent.send_signal(signal.SIGTERM)
            assert (await engine.next("leaving"))["grace_ms"] == 300
            assert all(map(alive, all_pids))
        assert (await engine.next("group"))["state"] == "stopped"
        assert not any(map(alive, all_pids))
        assert await exit_code(engine) == 0

    served(tmp_path, test)


@pytest.mark.parametrize(("environment", "wanted_ms"), [("", 200), ("0.3", 300)])
def test_the_newest_engine_says_how_long_a_machine_is_left_unless_the_environment_does(
    tmp_path: Path, environment: str, wanted_ms: int
) -> None:
    async def test(first: FakeEngine) -> None:
        agent = first.start_agent(HOLDFAST_PREEMPT_GRACE_S=environment)
        await first.start_group()
        async with FakeEngine(tmp_path, boot="engine-boot-2", epoch=2) as engine:
            engine.preempt_grace_ms = 200
            await engine.next("hello")  # Adopted.
            await engine.next("heartbeat")
            agent.send_signal(signal.SIGTERM)
            assert (await engine.next("leaving"))["grace_ms"] == wanted_ms
            assert await exit_code(first) == 0

    served(tmp_path, test, grace_ms=60_000)


def test_nothing_is_left_when_the_agent_is_killed(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        agent = engine.start_agent()
        all_pids = await ready_with_children(engine, ranks=2)
        await engine.task("hold_gil", {"ms": 60_000})
        await engine.next("progress")
        os.kill(all_pids[3], signal.SIGSTOP)  # Rank 1 reads nothing and runs no thread.
        agent.kill()
        await until_dead(all_pids, END_S)

    served(tmp_path, test)


def test_nothing_is_left_when_the_engine_does_not_come_back(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        all_pids = await ready_with_children(engine)
        started = time.monotonic()
        await engine.die()
        assert await exit_code(engine) == 3
        assert not any(map(alive, all_pids))
        assert 0.4 <= time.monotonic() - started <= END_S

    served(tmp_path, test, grace_ms=400)
