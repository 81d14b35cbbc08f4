"""The rank processes of one generation: what each is started with, and what is left of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from fake_engine import alive
from holdfast_worker.agent.process import GROUP_VARIABLE
from holdfast_worker.agent.ranks import Ranks
from holdfast_worker.rank.failures import report
from holdfast_worker.rank.frames import RankReady
from holdfast_worker.wire.frames import EngineStartGroup, GroupPart, Rendezvous

ENVIRONMENT = """
import os


class Worker:
    def __init__(self, context):
        self.context = context
        self.operations = {}

    def boot(self):
        names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "HOLDFAST_ROLE", "MINE"]
        found = {name: os.environ.get(name) for name in names}
        return {"environment": found, "rank": self.context.rank, "spec": self.context.spec}
"""


def ranks(tmp_path: Path, **changes: Any) -> Ranks:
    (tmp_path / "told_worker.py").write_text(ENVIRONMENT)
    start = {
        "epoch": 1,
        "seq": 1,
        "group": "sampler/0",
        "role": "sampler",
        "generation": 3,
        "ranks": 2,
        "python": sys.executable,
        "module": "told_worker",
        "env": {"PYTHONPATH": str(tmp_path), "MINE": "given", "RANK": "77"},
        "spec": {"size": 1},
        "spec_hash": "hash-of-the-spec",
        "interface": None,
        "log_dir": str(tmp_path),
        "start_timeout_ms": 15_000,
        **changes,
    }
    return Ranks(EngineStartGroup(**start), nonce="nonce-of-a-test")


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 30))


class Listener:
    """What the ranks' processes said, and who ended."""

    def __init__(self) -> None:
        self.items: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.seen: list[tuple[str, Any]] = []

    def __call__(self, item: tuple[str, Any]) -> None:
        self.items.put_nowait(item)

    async def until(self, kind: str, count: int) -> list[Any]:
        while len(found := [value for name, value in self.seen if name == kind]) < count:
            self.seen.append(await self.items.get())
        return found

    async def ready(self, count: int) -> dict[int, RankReady]:
        while True:
            messages = [value for name, value in self.seen if name == "message"]
            found = {rank: said for rank, said in messages if isinstance(said, RankReady)}
            if len(found) == count:
                return found
            assert all(kind != "exit" for kind, _ in self.seen), self.seen
            self.seen.append(await self.items.get())


def test_ranks_are_numbered_over_all_hosts(tmp_path: Path) -> None:
    whole = ranks(tmp_path, ranks=3)
    assert (list(whole.numbers), whole.world_size, whole.is_whole) == ([0, 1, 2], 3, True)
    meeting = Rendezvous(address="127.0.0.1", port=1)
    part = ranks(tmp_path, ranks=8, part=GroupPart(first=4, ranks=2, rendezvous=meeting))
    assert (list(part.numbers), part.world_size, part.is_whole) == ([4, 5], 8, False)


def test_each_rank_is_started_with_its_place_and_the_groups_environment(tmp_path: Path) -> None:
    async def body() -> None:
        meeting = Rendezvous(address="127.0.0.1", port=1)
        group = ranks(tmp_path, ranks=4, part=GroupPart(first=2, ranks=2, rendezvous=meeting))
        listener = Listener()
        assert await group.start(listener) is None
        try:
            found = await listener.ready(2)
            assert sorted(found) == [2, 3]
            for rank, said in found.items():
                assert said.info == {
                    "environment": {
                        "RANK": str(rank),
                        "LOCAL_RANK": str(rank - 2),
                        "WORLD_SIZE": "4",
                        "LOCAL_WORLD_SIZE": "2",
                        "HOLDFAST_ROLE": "sampler",
                        "MINE": "given",
                    },
                    "rank": rank,
                    "spec": {"size": 1},
                }
                environ = Path(f"/proc/{group.of(rank).pid}/environ").read_bytes()
                assert f"{GROUP_VARIABLE}=nonce-of-a-test".encode() in environ.split(b"\0")
                assert (tmp_path / f"sampler_0.rank{rank}.gen3.log").exists()
        finally:
            await group.kill()

    run(body)


def test_ranks_of_other_hosts_hear_where_to_meet_before_anything_else(tmp_path: Path) -> None:
    async def body() -> None:
        listener = Listener()
        group = ranks(tmp_path, part=GroupPart(first=0, ranks=1, rendezvous=None))
        assert await group.start(listener) is None
        try:
            kind, (address, port) = await listener.items.get()
            assert (kind, address) == ("rendezvous", "127.0.0.1")
            assert port > 0
        finally:
            await group.kill()

    run(body)


def test_kill_leaves_no_process_and_every_rank_says_that_it_ended(tmp_path: Path) -> None:
    async def body() -> None:
        listener = Listener()
        group = ranks(tmp_path)
        assert await group.start(listener) is None
        await listener.ready(2)
        pids = [process.pid for process in group.processes]
        assert all(alive(pid) for pid in pids)
        await group.kill()
        assert not any(alive(pid) for pid in pids)
        assert sorted(await listener.until("exit", 2)) == [0, 1]
        assert [(state.rank, state.state) for state in group.describe()] == [
            (0, "exited"),
            (1, "exited"),
        ]

    run(body)


def test_shut_down_ends_ranks_that_listen_without_a_kill(tmp_path: Path) -> None:
    async def body() -> None:
        listener = Listener()
        group = ranks(tmp_path)
        assert await group.start(listener) is None
        await listener.ready(2)
        await group.shut_down(30)
        states = group.describe()
        assert [(state.state, state.exit_code) for state in states] == [("exited", 0)] * 2
        await group.kill()

    run(body)


@pytest.mark.parametrize(
    ("changes", "cause", "message"),
    [
        ({"python": "/nowhere/python"}, "import_error", "Cannot start /nowhere/python: "),
        ({"interface": "none0"}, "bad_data", "Cannot use network interface 'none0' because"),
    ],
)
def test_a_rank_that_cannot_start_is_reported(
    tmp_path: Path, changes: dict[str, Any], cause: str, message: str
) -> None:
    async def body() -> None:
        meeting = Rendezvous(address="127.0.0.1", port=1)
        part = GroupPart(first=1, ranks=1, rendezvous=meeting)
        group = ranks(tmp_path, part=part, **changes)
        refusal = await group.start(Listener())
        await group.kill()
        assert refusal is not None
        assert (refusal.rank, refusal.cause) == (1, cause)
        assert refusal.message.startswith(message)
        assert group.processes == []

    run(body)


def test_reports_come_in_rank_order_with_the_log_of_their_rank(tmp_path: Path) -> None:
    async def body() -> None:
        listener = Listener()
        group = ranks(tmp_path)
        assert await group.start(listener) is None
        await listener.ready(2)
        await group.kill()
        reports = {rank: report(rank, cause="other", message="m") for rank in (1, 0, 9)}
        found = group.with_logs(reports)
        assert [item.rank for item in found] == [0, 1, 9]
        assert found[1].log_path == str(tmp_path / "sampler_0.rank1.gen3.log")
        assert found[2] == reports[9]  # Of another host.

    run(body)
