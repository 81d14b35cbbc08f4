"""
A group inside the test's own loop, where its limits can be made short; and what is said of a killed
rank.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from fake_engine import ROOT, alive
from holdfast_worker.agent import agent as agent_module
from holdfast_worker.agent import group as agent_group
from holdfast_worker.agent import process as agent_process
from holdfast_worker.agent.agent import Agent
from holdfast_worker.agent.group import Group
from holdfast_worker.agent.task import Task
from holdfast_worker.rank.frames import FromRank, read_from_rank
from holdfast_worker.wire.frames import (
    AgentProgress,
    EngineStartGroup,
    EngineTask,
    FailureReport,
    GroupPart,
    Rendezvous,
)
from holdfast_worker.wire.types import Arguments


class Sink:
    """Keeps a group's news."""

    def __init__(self) -> None:
        self.news: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    def group_changed(self, group: Group) -> None:
        self.news.put_nowait(("group", group.state))

    def group_meets(self, group: Group, address: str, port: int) -> None:
        self.news.put_nowait(("rendezvous", (address, port)))

    def task_progress(self, progress: AgentProgress) -> None:
        self.news.put_nowait(("progress", progress.rank))

    def task_result(self, task: Task) -> None:
        self.news.put_nowait(
            ("result", {rank: json.loads(output) for rank, output in task.outputs.items()})
        )

    def task_error(self, task: Task, failures: list[FailureReport]) -> None:
        self.news.put_nowait(("error", failures))


def start_message(tmp_path: Path, **fields: Any) -> EngineStartGroup:
    message = {
        "epoch": 1,
        "seq": 1,
        "group": "sampler/0",
        "role": "sampler",
        "generation": 3,
        "ranks": 2,
        "python": sys.executable,
        "module": "echo_worker",
        "env": {"PYTHONPATH": str(ROOT / "tests" / "python")},
        "spec": {},
        "spec_hash": "hash-of-the-spec",
        "interface": None,
        "log_dir": str(tmp_path),
        "start_timeout_ms": 15_000,
        **fields,
    }
    return EngineStartGroup(**message)


def task(op: str, **args: Any) -> Task:
    request = EngineTask(
        epoch=1,
        seq=1,
        task="t",
        group="sampler/0",
        generation=3,
        key="k",
        attempt=1,
        op=op,
        args=Arguments(json=json.dumps(args)),
        args_hash="hash-of-the-args",
    )
    return Task(request)


class HeldGroup:
    """
    A generation that ends when it is told to, and whose stacks are written when the test says so.
    """

    def __init__(self, start: EngineStartGroup, **_: Any) -> None:
        self.generation = start.generation
        self.state = "ready"
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.written = asyncio.Event()
        self.ranks = self

    async def write_stacks(self) -> None:
        await self.written.wait()

    def stop(self, _: float) -> None:
        self.state = "stopped"
        if not self.done.done():
            self.done.set_result(None)


def test_an_operation_that_does_not_heed_its_cancel_costs_the_group_its_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_group, "CANCEL_GRACE_S", 0.2)

    async def run() -> None:
        sink = Sink()
        group = Group(start_message(tmp_path), sink=sink, agent_boot="boot")
        assert await sink.news.get() == ("group", "ready")
        group.submit(task("hang", rank=1))
        assert {await sink.news.get(), await sink.news.get()} == {("progress", 0), ("progress", 1)}
        group.cancel("t")
        while (item := await sink.news.get())[0] == "progress":
            pass
        assert item[0] == "error"
        assert [(f.rank, f.cause) for f in item[1]] == [(1, "timeout")]
        assert "still running after 0.2 s" in item[1][0].message
        assert await sink.news.get() == ("group", "failed")
        assert not any(alive(rank.pid) for rank in group.describe().ranks)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_message_that_the_agent_cannot_read_costs_the_group_its_life_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(sent: dict[str, Any]) -> FromRank | None:
        shorter = {name: value for name, value in sent.items() if name != "output"}
        return read_from_rank(shorter)

    monkeypatch.setattr(agent_process, "read_from_rank", read)

    async def run() -> None:
        sink = Sink()
        group = Group(start_message(tmp_path, ranks=1), sink=sink, agent_boot="boot")
        assert await sink.news.get() == ("group", "ready")
        group.submit(task("echo", value=1))
        while (item := await sink.news.get())[0] == "progress":
            pass
        assert item[0] == "error"
        assert [(f.rank, f.cause) for f in item[1]] == [(0, "other")]
        assert "Cannot read a message of rank 0" in item[1][0].message
        assert "'output'" in item[1][0].message
        assert await sink.news.get() == ("group", "failed")
        assert not any(alive(rank.pid) for rank in group.describe().ranks)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_task_given_while_the_group_starts_runs_when_it_is_ready(tmp_path: Path) -> None:
    async def run() -> None:
        sink = Sink()
        group = Group(start_message(tmp_path), sink=sink, agent_boot="boot")
        group.submit(task("count"))
        assert await sink.news.get() == ("group", "ready")
        assert await sink.news.get() == ("result", {0: {"count": 1}, 1: {"count": 1}})
        group.stop(2)
        assert await sink.news.get() == ("group", "stopped")
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "sampler_0.rank0.gen3.log",
            "sampler_0.rank1.gen3.log",
        ]

    asyncio.run(asyncio.wait_for(run(), 30))


def test_two_hosts_have_the_ranks_of_one_group_between_them(tmp_path: Path) -> None:
    """Each agent starts its own; rank 0's says where they meet."""

    async def run() -> None:
        one, two = Sink(), Sink()

        def part(first: int, ranks: int, place: tuple[str, int] | None) -> EngineStartGroup:
            rendezvous = place and Rendezvous(address=place[0], port=place[1])
            group_part = GroupPart(first=first, ranks=ranks, rendezvous=rendezvous)
            return start_message(tmp_path, ranks=3, part=group_part)

        first = Group(part(0, 1, None), sink=one, agent_boot="one")
        kind, place = await one.news.get()
        assert (kind, place[0]) == ("rendezvous", "127.0.0.1")
        second = Group(part(1, 2, ("10.9.8.7", place[1])), sink=two, agent_boot="two")
        assert await one.news.get() == await two.news.get() == ("group", "ready")
        assert [rank.rank for rank in second.describe().ranks] == [1, 2]
        outputs: dict[int, Any] = {}
        for group, sink in ((first, one), (second, two)):
            group.submit(task("environment"))
            kind, answer = await sink.news.get()
            assert kind == "result"
            outputs |= answer
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        seen = [[outputs[rank]["env"][name] for rank in range(3)] for name in names]
        assert seen == [["0", "1", "2"], ["3", "3", "3"], ["0", "0", "1"]]
        addresses = [outputs[rank]["env"]["MASTER_ADDR"] for rank in range(3)]
        assert addresses == ["127.0.0.1", "10.9.8.7", "10.9.8.7"]
        assert {outputs[rank]["env"]["MASTER_PORT"] for rank in range(3)} == {str(place[1])}
        os.kill(second.ranks.of(2).pid, signal.SIGKILL)
        assert await two.news.get() == ("group", "failed")
        failed = [(failure.rank, failure.signal) for failure in second.failures]
        assert failed == [(2, "SIGKILL")]
        first.stop(0)
        assert await one.news.get() == ("group", "stopped")

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_group_stopped_while_it_starts_answers_its_tasks_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        sink = Sink()
        group = Group(start_message(tmp_path, spec={"boot": "hang"}), sink=sink, agent_boot="boot")
        group.submit(task("echo"))
        group.stop(0)
        kind, failures = await sink.news.get()
        assert (kind, failures[0].message) == ("error", "The group sampler/0 was stopped")
        assert await sink.news.get() == ("group", "stopped")
        assert not any(alive(rank.pid) for rank in group.describe().ranks)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_wish_that_a_later_one_has_overtaken_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_module, "Group", HeldGroup)

    async def run() -> None:
        agent = Agent(tmp_path / "hub.json", "host/0")
        groups: dict[str, Any] = agent._groups
        agent._on_start_group(start_message(tmp_path, generation=1))
        first = groups["sampler/0"]
        agent._on_start_group(start_message(tmp_path, generation=2))
        await asyncio.sleep(0)  # It waits for the first one's stacks from here on.
        first.state = "failed"
        agent._on_start_group(start_message(tmp_path, generation=3))
        waiting = list(agent._replacing)
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        first.written.set()
        await asyncio.gather(*waiting)
        assert (groups["sampler/0"].generation, groups["sampler/0"].state) == (3, "ready")

    asyncio.run(asyncio.wait_for(run(), 30))
