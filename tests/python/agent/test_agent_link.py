"""An agent's line to its engine: dropped, taken up again, and left for a newer engine."""

import os
from pathlib import Path

from fake_engine import TOKEN, FakeEngine, alive
from served_agent import exit_code, pids, ready_with_children, served


def test_agent_says_hello_with_the_hubs_token(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        agent = engine.start_agent()
        hello = await engine.next("hello")
        assert (hello["agent_id"], hello["pid"], hello["engine_boot"]) == (
            "host/0",
            agent.pid,
            None,
        )
        assert engine.headers[-1]["Authorization"] == f"Bearer {TOKEN}"
        assert (
            TOKEN
            not in Path(f"/proc/{agent.pid}/cmdline").read_text()
            + Path(f"/proc/{agent.pid}/environ").read_text()
        )

    served(tmp_path, test)


def test_a_dropped_line_is_taken_up_again_and_what_was_not_acknowledged_comes_again(
    tmp_path: Path,
) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        state = await engine.start_group()
        engine.acknowledge = False
        task = await engine.task("blob", {"sizes": [10]})
        await engine.answer(task["task"])
        engine.blobs.clear()
        engine.seen.clear()
        engine._taken = 0
        engine.cut()
        hello = await engine.next("hello")
        assert hello["engine_boot"] == engine.boot and hello["received_seq"] == 2
        assert [(t["task"], t["state"]) for t in hello["tasks"]] == [(task["task"], "finished")]
        assert pids(hello["groups"][0]) == pids(state)
        engine.acknowledge = True
        again = await engine.answer(task["task"])
        assert bytes(engine.blobs[(task["task"], 0)]) == bytes(10)
        await engine.next("result", lambda m: m == again)
        engine.cut()
        # Its row may not be durable.
        assert [t["task"] for t in (await engine.next("hello"))["tasks"]] == [task["task"]]
        await engine.send({"type": "release", "task": task["task"]})
        engine.cut()
        assert (await engine.next("hello"))["tasks"] == []

    served(tmp_path, test, grace_ms=5_000)


def test_what_the_engine_drops_at_welcome_is_not_sent_again(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.start_group()
        engine.acknowledge = False
        finished = await engine.call("echo")
        running = await engine.task("sleep_until_cancelled")
        await engine.next("progress")
        engine.task_verdicts = [
            {"task": name, "verdict": "drop"} for name in (finished["task"], running["task"])
        ]
        engine.seen.clear()
        engine._taken = 0
        engine.acknowledge = True
        engine.cut()
        failures = (await engine.answer(running["task"]))["failures"]
        assert [failure["cause"] for failure in failures] == ["cancelled"]
        assert not [m for m in engine.seen if m["type"] == "result"]

    served(tmp_path, test, grace_ms=5_000)


def test_an_engine_of_another_boot_that_says_drop_ends_the_agent(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        all_pids = await ready_with_children(engine)
        port, engine.boot, engine.verdict = engine.port, "engine-boot-2", "drop"
        await engine.die()
        await engine.listen(port)
        hello = await engine.next("hello", lambda m: m["engine_boot"] == "engine-boot-1")
        assert hello["groups"][0]["state"] == "ready"
        assert await exit_code(engine) == 0
        assert not any(map(alive, all_pids))

    served(tmp_path, test, grace_ms=5_000)


def test_a_frozen_engine_is_left_for_one_of_a_higher_epoch_and_the_agent_never_goes_back(
    tmp_path: Path,
) -> None:
    async def test(frozen: FakeEngine) -> None:
        frozen.start_agent()
        state = await frozen.start_group()
        await frozen.task("hang")
        await frozen.next("progress")
        hub_of_frozen = (tmp_path / "hub.json").read_text()
        async with FakeEngine(tmp_path, boot="engine-boot-2", epoch=2, grace_ms=400) as engine:
            hello = await engine.next(
                "hello"
            )  # The line to the frozen engine was open all the time.
            assert hello["engine_boot"] == "engine-boot-1"
            assert pids(hello["groups"][0]) == pids(state)
            held = hello["groups"][0]
            assert (held["role"], held["spec_hash"], held["info"]) == (
                "trainer",
                "hash-of-the-spec",
                state["info"],
            )
            assert [(t["op"], t["key"], t["args_hash"], t["state"]) for t in hello["tasks"]] == [
                ("hang", "k/hang", "hash-hang", "running")
            ]
            greeted = len([m for m in frozen.seen if m["type"] == "hello"])
        (tmp_path / "hub.json").write_text(hub_of_frozen)
        assert await exit_code(frozen) == 3
        assert len([m for m in frozen.seen if m["type"] == "hello"]) == greeted
        assert not any(map(alive, pids(state)))

    served(tmp_path, test, grace_ms=60_000)


def test_answers_are_kept_for_another_engine_and_sent_as_it_asks(tmp_path: Path) -> None:
    async def test(first: FakeEngine) -> None:
        first.start_agent()
        await first.start_group()
        # Both were acknowledged.
        wanted, unwanted = await first.call("blob", {"sizes": [10]}), await first.call("echo")
        second = FakeEngine(tmp_path, boot="engine-boot-2", epoch=2)
        second.task_verdicts = [
            {"task": wanted["task"], "verdict": "deliver"},
            {"task": unwanted["task"], "verdict": "keep"},
        ]
        async with second:
            tasks = (await second.next("hello"))["tasks"]
            assert [(t["task"], t["state"]) for t in tasks] == [
                (wanted["task"], "finished"),
                (unwanted["task"], "finished"),
            ]
            again = await second.answer(wanted["task"])
            assert again == {**wanted, "seq": 1}
            assert bytes(second.blobs[(wanted["task"], 0)]) == bytes(10)
            assert (await second.call("count"))["seq"] == 2
            assert not [m for m in second.seen if m.get("task") == unwanted["task"]]

    served(tmp_path, test, grace_ms=60_000)


def test_the_hub_file_is_read_again_before_every_connect(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        state = await engine.start_group()
        await engine.die()
        await engine.listen(0)  # Another port, written to hub.json.
        assert pids((await engine.next("hello"))["groups"][0]) == pids(state)

    served(tmp_path, test, grace_ms=5_000)


def test_fault_drop_cuts_the_line_once_and_costs_nothing(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent(
            HOLDFAST_FAULT="drop:agent@frame:6", HOLDFAST_FAULTS_DIR=str(tmp_path / "faults")
        )
        await engine.start_group()
        for _ in range(3):
            assert (await engine.call("echo"))["type"] == "result"
        assert len([m for m in engine.seen if m["type"] == "hello"]) == 2
        assert os.listdir(tmp_path / "faults") == ["drop:agent@frame:6"]

    served(tmp_path, test, grace_ms=5_000)


def test_an_agent_whose_line_the_engine_closes_for_what_it_says_ends_with_the_reason(
    tmp_path: Path,
) -> None:
    async def test(engine: FakeEngine) -> None:
        agent = engine.start_agent()
        for _ in range(3):
            await engine.next("hello")
            assert engine.connection
            await engine.connection.close(1009, "frame of 9 bytes")
        assert await exit_code(engine) == 2
        assert agent.returncode == 2
        said = (engine.home / "agent.log").read_text()
        assert "the engine closed it 3 times (1009, too large: frame of 9 bytes)" in said

    served(tmp_path, test, grace_ms=60_000)
