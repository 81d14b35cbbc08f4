"""The frames between the engine's hub and a host's agent.

Generated from `workers/line/protocol.ts` by `deno task schema`.
The line adds `seq` to what an agent sends reliably.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

from holdfast_worker.json_value import JsonValue
from holdfast_worker.wire.frame import DroppableFrame, Frame, ReliableFrame
from holdfast_worker.wire.types import ArgumentsBeside, ArgumentsInline

RankStateName = Literal[
    "starting",
    "ready",
    "busy",
    "exited",
]
GroupStateName = Literal[
    "starting",
    "ready",
    "failed",
    "stopped",
]
FailureCause = Literal[
    "exit",
    "signal",
    "import_error",
    "out_of_memory",
    "user_code",
    "bad_data",
    "cancelled",
    "disk_full",
    "timeout",
    "other",
]


class RankState(TypedDict):
    rank: int
    pid: int
    process_start: str
    state: RankStateName
    exit_code: int | None
    signal: str | None
    process_state: str | None


class GroupState(TypedDict):
    group: str
    generation: int
    state: GroupStateName
    ranks: list[RankState]


class HeldGroup(TypedDict):
    group: str
    generation: int
    state: GroupStateName
    ranks: list[RankState]
    role: str
    spec_hash: str
    info: dict[str, JsonValue]


class HeldTask(TypedDict):
    task: str
    group: str
    generation: int
    key: str
    attempt: int
    epoch: int
    op: str
    args_hash: str
    cancelled: bool
    state: Literal["running", "finished"]


class FailureReport(TypedDict):
    rank: int
    cause: FailureCause
    exception: str | None
    message: str
    traceback: str | None
    exit_code: int | None
    signal: str | None
    log_tail: list[str]
    log_errors: list[str]
    kernel: list[str]
    oom_kills: int | None
    log_path: str
    at_ms: float


class OutputInline(TypedDict):
    json: str


class OutputBeside(TypedDict):
    blob: int


class BlobRef(TypedDict):
    sha256: str
    bytes: int


class TaskVerdict(TypedDict):
    task: str
    verdict: Literal["go_on", "deliver", "keep", "drop"]


class Rendezvous(TypedDict):
    address: str
    port: int


class GroupPart(TypedDict):
    first: int
    ranks: int
    rendezvous: Rendezvous | None


@dataclass(frozen=True, kw_only=True)
class EngineWelcome(Frame):
    kind = "welcome"
    epoch: int
    engine_boot: str
    run: str
    heartbeat_ms: int
    grace_ms: int
    preempt_grace_ms: int
    received_seq: int
    verdict: Literal["go_on", "drop"]
    tasks: list[TaskVerdict]


@dataclass(frozen=True, kw_only=True)
class EngineStartGroup(Frame):
    kind = "start_group"
    epoch: int
    seq: int
    group: str
    role: str
    generation: int
    ranks: int
    part: GroupPart | None = None
    python: str
    module: str
    env: dict[str, str]
    spec: JsonValue
    spec_hash: str
    interface: str | None
    log_dir: str
    start_timeout_ms: int


@dataclass(frozen=True, kw_only=True)
class EngineStopGroup(Frame):
    kind = "stop_group"
    epoch: int
    seq: int
    group: str
    generation: int
    grace_ms: int


@dataclass(frozen=True, kw_only=True)
class EngineTask(Frame):
    kind = "task"
    epoch: int
    seq: int
    task: str
    group: str
    generation: int
    key: str
    attempt: int
    op: str
    args: ArgumentsInline | ArgumentsBeside
    args_hash: str


@dataclass(frozen=True, kw_only=True)
class EngineRelease(Frame):
    kind = "release"
    epoch: int
    seq: int
    task: str


@dataclass(frozen=True, kw_only=True)
class EngineCancel(Frame):
    kind = "cancel"
    epoch: int
    seq: int
    task: str


@dataclass(frozen=True, kw_only=True)
class EngineShutdown(Frame):
    kind = "shutdown"
    epoch: int
    seq: int


@dataclass(frozen=True, kw_only=True)
class EngineAck(Frame):
    kind = "ack"
    epoch: int
    received_seq: int


@dataclass(frozen=True, kw_only=True)
class AgentHello(DroppableFrame):
    kind = "hello"
    protocol: int
    agent_id: str
    boot_id: str
    engine_boot: str | None
    pid: int
    host: str
    packages: dict[str, str]
    gpus: list[str]
    gpu_order: Literal["PCI_BUS_ID"] | None
    groups: list[HeldGroup]
    tasks: list[HeldTask]
    received_seq: int


@dataclass(frozen=True, kw_only=True)
class AgentAccepted(DroppableFrame):
    kind = "accepted"
    task: str


@dataclass(frozen=True, kw_only=True)
class AgentProgress(DroppableFrame):
    kind = "progress"
    task: str
    rank: int
    phase: str
    done: float
    total: float | None
    metrics: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class AgentRendezvous(ReliableFrame):
    kind = "rendezvous"
    group: str
    generation: int
    address: str
    port: int


@dataclass(frozen=True, kw_only=True)
class AgentLog(DroppableFrame):
    kind = "log"
    group: str
    rank: int
    line: str


@dataclass(frozen=True, kw_only=True)
class AgentHeartbeat(DroppableFrame):
    kind = "heartbeat"
    groups: list[GroupState]


@dataclass(frozen=True, kw_only=True)
class AgentLeaving(DroppableFrame):
    kind = "leaving"
    grace_ms: int


@dataclass(frozen=True, kw_only=True)
class AgentAck(DroppableFrame):
    kind = "ack"
    received_seq: int


@dataclass(frozen=True, kw_only=True)
class AgentFenced(DroppableFrame):
    kind = "fenced"
    epoch: int


@dataclass(frozen=True, kw_only=True)
class AgentResult(ReliableFrame):
    kind = "result"
    task: str
    outputs: list[OutputInline | OutputBeside]
    blobs: list[BlobRef]


@dataclass(frozen=True, kw_only=True)
class AgentError(ReliableFrame):
    kind = "error"
    task: str
    failures: list[FailureReport]


@dataclass(frozen=True, kw_only=True)
class AgentGroup(ReliableFrame):
    kind = "group"
    group: str
    generation: int
    state: GroupStateName
    ranks: list[RankState]
    info: dict[str, JsonValue]
    failures: list[FailureReport]


EngineFrame = (
    EngineWelcome
    | EngineStartGroup
    | EngineStopGroup
    | EngineTask
    | EngineRelease
    | EngineCancel
    | EngineShutdown
    | EngineAck
)
