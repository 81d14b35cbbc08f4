"""One generation of a worker group, or of its ranks on this host: all or none. After one error a
generation is dead and is killed whole; whether a new one follows is the engine's decision."""

from __future__ import annotations

import asyncio
from typing import Literal, Protocol

from msgspec.structs import asdict, replace

from holdfast_worker.agent.ranks import RankNews, Ranks
from holdfast_worker.agent.task import Task
from holdfast_worker.json_value import JsonValue
from holdfast_worker.rank.failures import ADDRESS_IN_USE, report, report_of_exit
from holdfast_worker.rank.frames import (
    AskRank,
    CancelRank,
    FromRank,
    RankBlob,
    RankError,
    RankProgress,
    RankReady,
    RankResult,
)
from holdfast_worker.wire.frames import (
    AgentProgress,
    EngineStartGroup,
    FailureCause,
    FailureReport,
    GroupState,
    GroupStateName,
    HeldGroup,
)

# After a first failure: one root makes many cascades, and all reports are needed to find it.
LAST_WORDS_S = 1.0
CANCEL_GRACE_S = 5.0  # A cancelled operation that does not return by then costs the group its life.
PORT_TRIES_MAX = 3
# The worker says that its state is as before the operation.
MILD_CAUSES: set[FailureCause] = {"user_code", "bad_data", "cancelled", "disk_full"}


class Sink(Protocol):
    """Where a group's news goes."""

    def group_changed(self, group: Group) -> None: ...
    def group_meets(self, group: Group, address: str, port: int) -> None: ...
    def task_progress(self, progress: AgentProgress) -> None: ...
    def task_result(self, task: Task) -> None: ...
    def task_error(self, task: Task, failures: list[FailureReport]) -> None: ...


# What a group hears: from its ranks, from the agent, and from its own timers.
Item = (
    RankNews
    | tuple[Literal["task"], Task]
    | tuple[Literal["cancel", "cancel_grace"], str]
    | tuple[Literal["stop"], float]
    | tuple[Literal["start_timeout", "last_words"], None]
)


class Group:
    """
    Started from a `start_group` message; lives in its own asyncio task until it has failed or was
    stopped.
    """

    def __init__(self, start: EngineStartGroup, *, sink: Sink, agent_boot: str) -> None:
        self.name = start.group
        self.generation = start.generation
        self.state: GroupStateName = "starting"
        self.info: dict[str, JsonValue] = {}
        self.failures: list[FailureReport] = []
        self._start = start
        self._sink = sink
        self.ranks = Ranks(start, nonce=f"{agent_boot}/{self.name}/{self.generation}")
        self._tasks: dict[str, Task] = {}
        self._inbox: asyncio.Queue[Item] = asyncio.Queue()
        self._ready: dict[int, dict[str, JsonValue]] = {}
        self._reports: dict[int, FailureReport] = {}
        self._timers: list[asyncio.TimerHandle] = []
        # Open while the ranks' last words are waited for.
        self._window: asyncio.TimerHandle | None = None
        self.done = asyncio.create_task(self._live(), name=f"group {self.name} {self.generation}")

    # What the agent asks of a group. All return at once.

    def submit(self, task: Task) -> None:
        self._inbox.put_nowait(("task", task))

    def cancel(self, task_id: str) -> None:
        self._inbox.put_nowait(("cancel", task_id))

    def stop(self, grace_s: float) -> None:
        self._inbox.put_nowait(("stop", grace_s))

    def describe(self) -> GroupState:
        return GroupState(
            group=self.name,
            generation=self.generation,
            state=self.state,
            ranks=self.ranks.describe(),
        )

    def describe_held(self) -> HeldGroup:
        role, spec_hash = self._start.role, self._start.spec_hash
        described = asdict(self.describe())
        return HeldGroup(**described, role=role, spec_hash=spec_hash, info=self.info)

    # A generation's life.

    async def _live(self) -> None:
        try:
            if await self._boot():
                self._change("ready")
                await self._serve()
        except (
            Exception
        ) as error:  # A fault of the agent itself must not leave ranks behind or a task unanswered.
            failure = self._agent_report(f"The agent failed: {error!r}")
            self._reports.setdefault(self.ranks.first, failure)
            await self._fail()

    def _agent_report(self, message: str) -> FailureReport:
        """What no rank said."""
        return report(self.ranks.first, cause="other", message=message)

    def _change(self, state: GroupStateName) -> None:
        self.state = state
        self._sink.group_changed(self)

    async def _boot(self) -> bool:
        """
        Starts all ranks; on a taken rendezvous port once more on another. True if all are ready.
        """
        # Ranks of other hosts were told of the first port.
        tries = PORT_TRIES_MAX if self.ranks.is_whole else 1
        for attempt in range(1, tries + 1):
            self._reports.clear()
            self._ready.clear()
            failed_to_start = await self._spawn()
            deadline = self._after(self._start.start_timeout_ms / 1000, ("start_timeout", None))
            ended = failed_to_start or await self._until_ready()
            deadline.cancel()
            if ended == "ready":
                self.info = self._ready[self.ranks.first]
                return True
            if ended == "stop":
                return False
            taken = any(
                ADDRESS_IN_USE.search(text)
                for item in self._reports.values()
                for text in _texts(item)
            )
            if not taken or attempt == tries:
                break
            await self._kill()
        await self._fail()
        return False

    async def _spawn(self) -> str | None:
        self._inbox = inbox = _without_rank_news(self._inbox)
        refusal = await self.ranks.start(inbox.put_nowait)
        if refusal is None:
            return None
        self._reports[refusal.rank] = refusal
        return "failed"

    async def _until_ready(self) -> str:
        """
        Takes news until all ranks are ready ("ready"), one has failed ("failed") or it is to stop
        ("stop").
        """
        waiting: list[Task] = []
        while len(self._ready) < self.ranks.size:
            match await self._inbox.get():
                case ("task", task):
                    waiting.append(task)
                case ("stop", grace_s):
                    await self._stop(grace_s, waiting)
                    return "stop"
                case ("last_words", _):
                    break
                case ("start_timeout", _):
                    self._report_silent_ranks()
                    break
                case ("rendezvous", (address, port)):
                    self._sink.group_meets(self, address, port)
                case ("message", (rank, RankReady(info=info))):
                    self._ready[rank] = info
                    self.ranks.of(rank).state = "ready"
                case ("message", (rank, RankError(failure=failure))) if self._heard_failure(
                    rank, failure
                ):
                    break
                case ("exit", rank) if self._heard_exit(rank):
                    break
                case _:
                    pass
        for task in waiting:
            self.submit(task)
        self._close_window()
        return "ready" if len(self._ready) == self.ranks.size else "failed"

    def _report_silent_ranks(self) -> None:
        limit = self._start.start_timeout_ms
        for rank in set(self.ranks.numbers) - set(self._ready) - set(self._reports):
            message = f"Cannot start rank {rank} of {self.name}: it was not ready after {limit} ms"
            self._reports[rank] = report(rank, cause="timeout", message=message)

    def _heard_failure(self, rank: int, failure: FailureReport) -> bool:
        """
        Notes a rank's failure and opens the window for the others' reports. True if no rank is left
        to wait for.
        """
        self._reports.setdefault(rank, failure)
        self._open_window()
        return len(self._reports) == self.ranks.size

    def _heard_exit(self, rank: int) -> bool:
        """As of a failure, whose report then says how the process ended, too."""
        ended = report_of_exit(rank, self.ranks.of(rank).returncode or 0)
        known = self._reports.get(rank, ended)
        codes = (ended.exit_code, ended.signal)
        self._reports[rank] = replace(known, exit_code=codes[0], signal=codes[1])
        return self._heard_failure(rank, ended)

    async def _serve(self) -> None:
        while True:
            match await self._inbox.get():
                case ("stop", grace_s):
                    return await self._stop(grace_s, [])
                case ("task", task):
                    self._hand_out(task)
                case ("cancel", task_id):
                    self._cancel(task_id)
                case ("message", (rank, RankError(task=None, failure=failure))) if (
                    self._heard_failure(rank, failure)
                ):
                    return await self._fail()
                case ("message", (rank, message)) if self._take(rank, message):
                    return await self._fail()
                case ("exit", rank) if self._heard_exit(rank):
                    return await self._fail()
                case ("last_words", _) if self._window:
                    return await self._fail()
                case ("cancel_grace", task_id) if task_id in self._tasks:
                    self._report_stuck(self._tasks[task_id])
                    return await self._fail()
                case _:
                    pass

    def _hand_out(self, task: Task) -> None:
        self._tasks[task.id] = task
        request = task.request
        message = AskRank(
            task=request.task,
            key=request.key,
            attempt=request.attempt,
            op=request.op,
            args=request.args,
        )
        self.ranks.send(message)
        for rank in self.ranks.processes:
            rank.state = "busy" if rank.state == "ready" else rank.state

    def _cancel(self, task_id: str) -> None:
        task = self._tasks.get(task_id)
        if task is None or task.cancelled:
            return
        task.cancelled = True
        self.ranks.send(CancelRank(task=task_id))
        self._after(CANCEL_GRACE_S, ("cancel_grace", task_id))

    def _report_stuck(self, task: Task) -> None:
        for rank in set(self.ranks.numbers) - set(task.outputs) - set(task.failures):
            message = (
                f"Cannot cancel operation '{task.op}' of rank {rank}: "
                f"it was still running after {CANCEL_GRACE_S} s"
            )
            self._reports[rank] = report(rank, cause="timeout", message=message)

    def _open_window(self) -> None:
        self._window = self._window or self._after(LAST_WORDS_S, ("last_words", None))

    def _close_window(self) -> None:
        """
        Its timer with it: it would close a later one too early, and a mild failure would end the
        group.
        """
        if self._window:
            self._window.cancel()
        self._window = None

    def _take(self, rank: int, message: FromRank) -> bool:
        """One message of a rank that is ready. True if the group has to end now."""
        task = None if isinstance(message, RankReady) else self._tasks.get(message.task or "")
        if task is None:
            return False
        match message:
            case RankProgress():
                self._sink.task_progress(AgentProgress(rank=rank, **vars(message)))
            case RankBlob():
                task.blobs.append(message.data)
            case RankResult():
                task.outputs[rank] = message.output
                return self._answered(task)
            case RankError():
                task.failures[rank] = message.failure
                return self._answered(task)
            case RankReady():
                pass
        return False

    def _answered(self, task: Task) -> bool:
        """
        Settles a task that all ranks answered. True if they did not agree: then their states
        differ, too.
        """
        if len(task.outputs) + len(task.failures) < self.ranks.size:
            fatal = any(not _is_mild(failure) for failure in task.failures.values())
            if task.failures and (fatal or self.ranks.size > 1):
                self._open_window()
            return False
        if task.failures and (task.outputs or not all(map(_is_mild, task.failures.values()))):
            return True
        self._close_window()
        del self._tasks[task.id]
        if not self._tasks:
            for rank in self.ranks.processes:
                rank.state = "ready"
        if task.failures:
            self._sink.task_error(task, self.ranks.with_logs(task.failures))
        else:
            self._sink.task_result(task)
        return False

    # Ends.

    async def _fail(self) -> None:
        """
        Kills all ranks, answers every open task with what is known, and says that the group is
        gone.
        """
        await self._kill()
        reports = dict(self._reports)
        for task in self._tasks.values():
            reports = {**reports, **task.failures}
        failures = self.ranks.with_logs(reports)
        self.failures = failures or [self._agent_report("The group ended without a report")]
        await self._end_tasks(self.failures)
        self._change("failed")

    async def _stop(self, grace_s: float, waiting: list[Task]) -> None:
        await self.ranks.shut_down(grace_s)
        await self._kill()
        for task in waiting:
            self._tasks[task.id] = task
        await self._end_tasks([self._agent_report(f"The group {self.name} was stopped")])
        self._change("stopped")

    async def _kill(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._close_window()
        await self.ranks.kill()

    async def _end_tasks(self, failures: list[FailureReport]) -> None:
        while not self._inbox.empty():  # Handed to the group, but not yet to its ranks.
            item = self._inbox.get_nowait()
            if item[0] == "task":
                self._tasks[item[1].id] = item[1]
        for task in self._tasks.values():
            self._sink.task_error(task, failures)
        self._tasks.clear()

    def _after(self, seconds: float, item: Item) -> asyncio.TimerHandle:
        inbox = self._inbox
        timer = asyncio.get_running_loop().call_later(seconds, inbox.put_nowait, item)
        self._timers.append(timer)
        return timer


def _is_mild(failure: FailureReport) -> bool:
    return failure.cause in MILD_CAUSES


def _texts(item: FailureReport) -> list[str]:
    return [item.message, item.traceback or ""]


def _without_rank_news(inbox: asyncio.Queue[Item]) -> asyncio.Queue[Item]:
    """What the agent asked for stays; what the ranks of a failed start said does not."""
    kept: asyncio.Queue[Item] = asyncio.Queue()
    while not inbox.empty():
        item = inbox.get_nowait()
        if item[0] in ("task", "cancel", "stop"):
            kept.put_nowait(item)
    return kept
