"""
The agent of one host: `python -m holdfast_worker.agent --hub-file PATH --agent-id ID`.

It connects back to the engine's hub, starts and ends groups of ranks as told, and answers whatever
a rank does, for it computes nothing itself and imports no torch. Exit codes: 0 told to end, 2 bad
start, 3 the engine is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import signal
import socket
import sys
import uuid
from importlib import metadata
from pathlib import Path

from msgspec.structs import asdict

from holdfast_worker import __version__
from holdfast_worker.agent.answers import Answers
from holdfast_worker.agent.group import Group
from holdfast_worker.agent.link import EngineGone, Link
from holdfast_worker.agent.log import keep_own_log_small, log
from holdfast_worker.agent.task import Task
from holdfast_worker.faults import phase_of
from holdfast_worker.gpus import gpu_order, visible_gpus
from holdfast_worker.linux import PR_SET_CHILD_SUBREAPER, prctl
from holdfast_worker.process_table import end_below
from holdfast_worker.rank.failures import fitting, report
from holdfast_worker.wire.frames import (
    PROTOCOL_VERSION,
    AgentAccepted,
    AgentGroup,
    AgentHeartbeat,
    AgentHello,
    AgentLeaving,
    AgentProgress,
    AgentRendezvous,
    EngineAck,
    EngineCancel,
    EngineFrame,
    EngineRelease,
    EngineShutdown,
    EngineStartGroup,
    EngineStopGroup,
    EngineTask,
    EngineWelcome,
    FailureReport,
)
from holdfast_worker.wire.protocol import ProtocolError, TooLarge

STOP_GRACE_S = 2.0
FLUSH_S = 0.5
PREEMPT_GRACE_S = 25.0  # Until an engine has said.


class Agent:
    """Tasks and groups of this host; the line to the engine is `Link`'s."""

    def __init__(self, hub_file: Path, agent_id: str) -> None:
        self._agent_id = agent_id
        self._boot_id = uuid.uuid4().hex
        self._groups: dict[str, Group] = {}
        self._roles: dict[str, str] = {}
        self._running: dict[str, Task] = {}
        self._replacing: set[asyncio.Task[None]] = set()
        self._ending = asyncio.Event()
        self._leaving = False
        self._preempt_grace_s = PREEMPT_GRACE_S
        self._link = Link(
            hub_file,
            hello=self._hello,
            heartbeat=self._heartbeat,
            receive=self._receive,
            phase=self._phase,
        )
        self._answers = Answers(self._link)

    async def run(self) -> int:
        """Until the engine or a signal says so. Returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._leave)
        line = asyncio.create_task(self._link.run())
        ending = asyncio.create_task(self._ending.wait())
        code = 0
        try:
            await asyncio.wait([line, ending], return_when=asyncio.FIRST_COMPLETED)
            if line.done():
                line.result()
            await self._stop_all()
        except EngineGone as gone:
            log(f"Ending: {gone}")
            code = 0 if "verdict drop" in str(gone) else 3
        except (ProtocolError, TooLarge) as error:  # Whoever comes next is told the same.
            log(f"Ending: {error}")
            code = 2
        finally:
            for group in self._groups.values():
                group.ranks.kill_now()
            end_below(os.getpid())  # What left its rank is ours, as we are a subreaper.
            line.cancel()
            ending.cancel()
        return code

    def _leave(self) -> None:
        """
        A signal: the host is being taken away. The engine is told and may save what it needs; a
        second one ends at once.
        """
        grace_s = preempt_grace_s(self._preempt_grace_s)
        if self._leaving or grace_s == 0 or not self._groups:
            self._ending.set()
            return
        self._leaving = True
        log(f"Ending in {grace_s:g} s: told to by a signal")
        self._link.offer(AgentLeaving(grace_ms=int(grace_s * 1000)))
        asyncio.get_running_loop().call_later(grace_s, self._ending.set)

    async def _stop_all(self) -> None:
        log("Ending: told to")
        for group in self._groups.values():
            group.stop(STOP_GRACE_S)
        if self._groups:
            await asyncio.wait(
                [group.done for group in self._groups.values()], timeout=STOP_GRACE_S + 5
            )
        await self._link.close(FLUSH_S)

    # What the line asks for.

    def _hello(self) -> AgentHello:
        finished = [task.held("finished") for task in self._answers.tasks()]
        running = [task.held("running") for task in self._running.values()]
        return AgentHello(
            protocol=PROTOCOL_VERSION,
            agent_id=self._agent_id,
            boot_id=self._boot_id,
            engine_boot=self._link.engine_boot,
            pid=os.getpid(),
            host=socket.gethostname(),
            packages=packages(),
            gpus=visible_gpus(os.environ),
            gpu_order=gpu_order(os.environ),
            groups=[group.describe_held() for group in self._groups.values()],
            tasks=finished + running,
            received_seq=self._link.received_seq,
        )

    def _heartbeat(self) -> AgentHeartbeat:
        return AgentHeartbeat(groups=[group.describe() for group in self._groups.values()])

    def _phase(self) -> str:
        """Of the operation that runs; the first if there are several."""
        task = next(iter(self._running.values()), None)
        return phase_of(self._roles.get(task.group, ""), task.op) if task else "other"

    def _receive(self, frame: EngineFrame) -> None:
        match frame:
            case EngineWelcome():
                self._on_welcome(frame)
            case EngineStartGroup():
                self._on_start_group(frame)
            case EngineStopGroup():
                self._on_stop_group(frame)
            case EngineTask():
                self._on_task(frame)
            case EngineRelease():
                self._on_release(frame)
            case EngineCancel():
                self._cancel(frame.task)
            case EngineShutdown():
                self._ending.set()
            case EngineAck():
                pass  # The line's own.

    # Engine messages. All are safe to get twice.

    def _on_welcome(self, welcome: EngineWelcome) -> None:
        self._preempt_grace_s = welcome.preempt_grace_ms / 1000
        for verdict in welcome.tasks:
            if verdict.verdict == "drop":
                self._drop(verdict.task)
            elif verdict.verdict != "keep":
                self._answers.deliver(verdict.task)

    def _drop(self, task_id: str) -> None:
        if task_id in self._answers:
            self._answers.drop(task_id)
        elif task_id in self._running:
            self._running[task_id].wanted = False
            self._cancel(task_id)

    def _on_release(self, release: EngineRelease) -> None:
        if release.task in self._running:
            self._running[release.task].wanted = False
        self._answers.release(release.task)

    def _on_start_group(self, start: EngineStartGroup) -> None:
        old = self._groups.get(start.group)
        if old and old.generation == start.generation:
            if old.state != "starting":  # A repeated wish is answered with how it went.
                self.group_changed(old)
            return
        if old and old.generation > start.generation:
            log(
                f"Ignored a start of {start.group} generation {start.generation}: "
                f"it has {old.generation}"
            )
            return
        self._roles[start.group] = start.role
        if old is None or old.done.done():
            self._start(start)
            return
        replacing = asyncio.create_task(self._replace(start))
        self._replacing.add(replacing)
        replacing.add_done_callback(self._replacing.discard)

    async def _replace(self, start: EngineStartGroup) -> None:
        """
        The old generation's processes are dead before the new one starts. It did not fail: the
        engine says it hangs. Does nothing once a later wish has its generation: while this one
        waited, it may have come first.
        """
        if self._groups[start.group].state == "ready":
            await self._groups[start.group].ranks.write_stacks()
        while (
            current := self._groups[start.group]
        ).generation < start.generation and not current.done.done():
            current.stop(0)
            await asyncio.wait([current.done])
        if current.generation < start.generation and not self._ending.is_set():
            self._start(start)

    def _start(self, start: EngineStartGroup) -> None:
        self._groups[start.group] = Group(start, sink=self, agent_boot=self._boot_id)

    def _on_stop_group(self, stop: EngineStopGroup) -> None:
        group = self._groups.get(stop.group)
        if group is None or group.generation != stop.generation:
            return
        if group.done.done():
            self.group_changed(group)
        else:
            group.stop(stop.grace_ms / 1000)

    def _on_task(self, request: EngineTask) -> None:
        task = Task(request)
        if task.id in self._answers:
            return  # Its answer was sent, and is sent again if the line has lost it.
        self._link.offer(AgentAccepted(task=task.id))
        if task.id in self._running:
            return
        self._running[task.id] = task
        group = self._groups.get(task.group)
        if (
            group is None
            or group.generation != request.generation
            or group.state in ("failed", "stopped")
        ):
            has = f"generation {group.generation} ({group.state})" if group else "no such group"
            text = (
                f"Cannot run '{task.op}' in {task.group} generation {request.generation}: "
                f"this host has {has}"
            )
            self.task_error(task, [report(0, cause="other", message=text)])
        else:
            group.submit(task)

    def _cancel(self, task_id: str) -> None:
        task = self._running.get(task_id)
        if task and task.group in self._groups:
            self._groups[task.group].cancel(task_id)

    # News of the groups.

    def group_changed(self, group: Group) -> None:
        log(f"{group.name} generation {group.generation} is {group.state}")
        failures = fitting(group.failures)
        self._link.send(AgentGroup(**asdict(group.describe()), info=group.info, failures=failures))

    def group_meets(self, group: Group, address: str, port: int) -> None:
        place = AgentRendezvous(
            group=group.name, generation=group.generation, address=address, port=port
        )
        self._link.send(place)

    def task_progress(self, progress: AgentProgress) -> None:
        self._link.offer(progress)

    def task_result(self, task: Task) -> None:
        self._running.pop(task.id, None)
        self._answers.send_result(task)

    def task_error(self, task: Task, failures: list[FailureReport]) -> None:
        self._running.pop(task.id, None)
        self._answers.send_error(task, failures)


def preempt_grace_s(configured: float) -> float:
    """
    Seconds that a scheduler leaves between SIGTERM and the end: the environment's word, else the
    configuration's.
    """
    try:
        return max(0.0, float(os.environ.get("HOLDFAST_PREEMPT_GRACE_S") or configured))
    except ValueError:
        return configured


def packages() -> dict[str, str]:
    """Versions that matter to the protocol."""
    found = {"python": platform.python_version(), "holdfast_worker": __version__}
    for name in ("websockets", "msgpack", "msgspec"):
        found[name] = metadata.version(name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m holdfast_worker.agent")
    parser.add_argument(
        "--hub-file",
        type=Path,
        required=True,
        help="hub.json of the run: url, token, engine_boot, epoch",
    )
    parser.add_argument("--agent-id", required=True, help="this host's name in the run")
    arguments = parser.parse_args()
    prctl(PR_SET_CHILD_SUBREAPER, 1)

    keep_own_log_small()

    async def live() -> int:
        return await Agent(arguments.hub_file, arguments.agent_id).run()

    try:
        code = asyncio.run(live())
    except ValueError as error:  # A fault that cannot be read.
        log(str(error))
        code = 2
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Threads that wait for dead ranks must not hold up the end.
