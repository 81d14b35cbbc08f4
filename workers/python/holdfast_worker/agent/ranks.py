"""
The rank processes of one generation of a group: started with one rendezvous, asked together, killed
together.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from holdfast_worker.agent.process import GROUP_VARIABLE, RankProcess, rank_environment
from holdfast_worker.operation import RankContext
from holdfast_worker.rank import flight_recorder, rendezvous
from holdfast_worker.rank.failures import report, with_log
from holdfast_worker.rank.frames import FromRank, ShutDownRank, StartRank, ToRank
from holdfast_worker.wire.frames import EngineStartGroup, FailureReport, GroupPart, RankState

FLIGHT_RECORDER_S = 2.0  # For a GPU's ranks to write which collectives they were in.
STACKS_S = 0.2  # To write its stacks: milliseconds, unless the machine is very busy.

RankNews = (
    tuple[Literal["rendezvous"], tuple[str, int]]
    | tuple[Literal["message"], tuple[int, FromRank]]
    | tuple[Literal["exit"], int]
)
Tell = Callable[[RankNews], None]


class Ranks:
    """Those of this host, as a `start_group` message wants them. `nonce`: what every process of the
    generation carries."""

    def __init__(self, start: EngineStartGroup, *, nonce: str) -> None:
        part = start.part or GroupPart(first=0, ranks=start.ranks, rendezvous=None)
        self.first = part.first
        self.size = part.ranks
        self.numbers = range(self.first, self.first + self.size)
        self.world_size = start.ranks
        self._rendezvous = part.rendezvous
        self.processes: list[RankProcess] = []
        self._start = start
        self._nonce = nonce
        self._group = start.group
        self._generation = start.generation
        self._log_dir = start.log_dir

    async def start(self, tell: Tell) -> FailureReport | None:
        """
        Starts all ranks anew. `tell` gets ("message", (rank, message)) and ("exit", rank), the exit
        last; before them ("rendezvous", (address, port)) where ranks of other hosts need to know.
        Returns a report if one cannot be started; those before it run until `kill`.
        """
        self.processes = []
        try:
            address = rendezvous.interface_address(self._start.interface)
        except ValueError as error:
            return report(self.first, cause="bad_data", message=str(error))
        place = self._place(address)
        if not self.is_whole and self._rendezvous is None:
            tell(("rendezvous", place))
        for rank in self.numbers:
            try:
                process = self._spawn(rank, place, address)
            except OSError as error:
                # No such Python, no disk for the log: the same for every rank.
                message = f"Cannot start {self._start.python}: {error}"
                return report(rank, cause="import_error", message=message)
            self.processes.append(process)
            await _attach(process, tell)
            context = self._context(rank, place)
            process.send(StartRank(module=self._start.module, context=context))
        return None

    @property
    def is_whole(self) -> bool:
        """Whether the group has no ranks on other hosts."""
        return self.size == self.world_size

    def of(self, rank: int) -> RankProcess:
        return self.processes[rank - self.first]

    def _place(self, address: str) -> tuple[str, int]:
        """Where all ranks of the group meet: here, unless rank 0 is on another host."""
        if self._rendezvous:
            return self._rendezvous.address, self._rendezvous.port
        return address, rendezvous.free_port(address)

    def _spawn(self, rank: int, place: tuple[str, int], address: str) -> RankProcess:
        rank_variables = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank - self.first),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_WORLD_SIZE": str(self.size),
            **rendezvous.environment(self._start.interface, address),
            "MASTER_ADDR": place[0],
            "MASTER_PORT": str(place[1]),
            "HOLDFAST_ROLE": self._start.role,
            GROUP_VARIABLE: self._nonce,
        }
        name = f"{self._group.replace('/', '_')}.rank{rank}.gen{self._generation}.log"
        group_variables = (
            flight_recorder.environment(self._log_dir, self._group, self._generation)
            | self._start.env
        )
        is_reward = self._start.role == "reward"
        env = rank_environment(
            os.environ, group_variables, rank_variables, keeps_hub_tokens=is_reward
        )
        return RankProcess(
            rank, python=self._start.python, env=env, log_path=Path(self._log_dir) / name
        )

    def _context(self, rank: int, place: tuple[str, int]) -> RankContext:
        variables = {**os.environ, **self._start.env}
        return RankContext(
            role=self._start.role,
            group=self._group,
            generation=self._generation,
            rank=rank,
            world_size=self.world_size,
            spec=self._start.spec,
            artifacts_dir=variables.get("HOLDFAST_ARTIFACTS", ""),
            master_addr=place[0],
            master_port=place[1],
            log_dir=self._log_dir,
            home=variables.get("HOLDFAST_HOME_DIR", ""),
        )

    def send(self, message: ToRank) -> None:
        for process in self.processes:
            process.send(message)

    def describe(self) -> list[RankState]:
        return [process.describe() for process in self.processes]

    async def write_stacks(self) -> None:
        """Evidence before ranks that hang are killed: every rank's stacks, in its log."""
        for process in self.processes:
            process.write_stacks()
        place = (self._log_dir, self._group)
        recorded = flight_recorder.ask(*place, generation=self._generation, ranks=self.numbers)
        await asyncio.sleep(FLIGHT_RECORDER_S if recorded else STACKS_S)

    def with_logs(self, reports: dict[int, FailureReport]) -> list[FailureReport]:
        """Reports by rank, in rank order, each with what its rank's log and the machine say."""
        processes = {process.rank: process for process in self.processes}
        return [_with_evidence(item, processes.get(rank)) for rank, item in sorted(reports.items())]

    async def shut_down(self, grace_s: float) -> None:
        """Asks all to end and waits for so long; those that do not are left to `kill`."""
        self.send(ShutDownRank())
        deadline = asyncio.get_running_loop().time() + grace_s
        while asyncio.get_running_loop().time() < deadline and any(
            p.state != "exited" for p in self.processes
        ):
            await asyncio.sleep(0.01)

    async def kill(self) -> None:
        """Until no process of any rank is alive."""
        for process in self.processes:
            process.kill()
        await asyncio.gather(*(process.wait_dead() for process in self.processes))
        place = (self._log_dir, self._group)
        flight_recorder.clean(*place, generation=self._generation, ranks=self.numbers)

    def kill_now(self) -> None:
        """For the agent's own end, without a loop."""
        for process in self.processes:
            process.kill_now()


async def _attach(process: RankProcess, tell: Tell) -> None:
    rank = process.rank
    await process.attach(
        on_message=lambda message: tell(("message", (rank, message))),
        on_exit=lambda: tell(("exit", rank)),
    )


def _with_evidence(item: FailureReport, process: RankProcess | None) -> FailureReport:
    if process is None:
        return item
    process.drain_log()
    kernel, oom_kills = process.machine_evidence()
    return replace(with_log(item, process.log_path), kernel=kernel, oom_kills=oom_kills)
