"""The frames between the engine's hub and a host's agent.

Generated from `workers/line/protocol.ts` by `deno task schema`.
The line adds `seq` to what an agent sends reliably.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast_worker.json_value import JsonValue, Number
from holdfast_worker.wire.frame import DroppableFrame, Frame, ReliableFrame
from holdfast_worker.wire.received import OneOf, Received
from holdfast_worker.wire.types import Arguments

PROTOCOL_VERSION = 5
Id = Annotated[str, Meta(min_length=1, max_length=200)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(gt=0)]
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


class RankState(Received, frozen=True, kw_only=True):
    rank: Natural
    pid: int
    process_start: str
    state: RankStateName
    exit_code: int | None
    signal: str | None
    process_state: str | None


class GroupState(Received, frozen=True, kw_only=True):
    group: Id
    generation: Positive
    state: GroupStateName
    ranks: list[RankState]


class HeldGroup(Received, frozen=True, kw_only=True):
    group: Id
    generation: Positive
    state: GroupStateName
    ranks: list[RankState]
    role: str
    spec_hash: str
    info: dict[str, JsonValue]


class HeldTask(Received, frozen=True, kw_only=True):
    task: Id
    group: Id
    generation: int
    key: str
    attempt: int
    epoch: int
    op: str
    args_hash: str
    cancelled: bool
    state: Literal["running", "finished"]


class FailureReport(Received, frozen=True, kw_only=True):
    rank: Natural
    cause: FailureCause
    exception: str | None
    message: str
    traceback: str | None
    exit_code: int | None
    signal: str | None
    log_tail: Annotated[list[str], Meta(max_length=40)]
    log_errors: Annotated[list[str], Meta(max_length=40)]
    kernel: Annotated[list[str], Meta(max_length=20)]
    oom_kills: int | None
    log_path: str
    at_ms: Number


class Output(OneOf, frozen=True, kw_only=True):
    json: str | UnsetType = UNSET
    blob: Natural | UnsetType = UNSET


class BlobRef(Received, frozen=True, kw_only=True):
    sha256: str
    bytes: int


class TaskVerdict(Received, frozen=True, kw_only=True):
    task: Id
    verdict: Literal["continue", "deliver", "keep", "drop"]


class Rendezvous(Received, frozen=True, kw_only=True):
    address: str
    port: Positive


class GroupPart(Received, frozen=True, kw_only=True):
    first: Natural
    ranks: Positive
    rendezvous: Rendezvous | None


class EngineWelcome(Frame, frozen=True, kw_only=True, tag_field="type", tag="welcome"):
    epoch: Positive
    engine_boot: Id
    run: Id
    heartbeat_ms: Positive
    grace_ms: Natural
    preempt_grace_ms: Natural
    received_seq: Natural
    verdict: Literal["continue", "drop"]
    tasks: list[TaskVerdict]


class EngineStartGroup(Frame, frozen=True, kw_only=True, tag_field="type", tag="start_group"):
    epoch: Positive
    seq: Positive
    group: Id
    role: str
    generation: Positive
    ranks: Positive
    part: GroupPart | UnsetType = UNSET
    python: str
    module: str
    env: dict[str, str]
    spec: JsonValue
    spec_hash: str
    interface: str | None
    log_dir: str
    start_timeout_ms: Positive


class EngineStopGroup(Frame, frozen=True, kw_only=True, tag_field="type", tag="stop_group"):
    epoch: Positive
    seq: Positive
    group: Id
    generation: int
    grace_ms: Natural


class EngineTask(Frame, frozen=True, kw_only=True, tag_field="type", tag="task"):
    epoch: Positive
    seq: Positive
    task: Id
    group: Id
    generation: int
    key: str
    attempt: int
    op: str
    args: Arguments
    args_hash: str


class EngineRelease(Frame, frozen=True, kw_only=True, tag_field="type", tag="release"):
    epoch: Positive
    seq: Positive
    task: Id


class EngineCancel(Frame, frozen=True, kw_only=True, tag_field="type", tag="cancel"):
    epoch: Positive
    seq: Positive
    task: Id


class EngineShutdown(Frame, frozen=True, kw_only=True, tag_field="type", tag="shutdown"):
    epoch: Positive
    seq: Positive


class EngineAck(Frame, frozen=True, kw_only=True, tag_field="type", tag="ack"):
    epoch: Positive
    received_seq: Natural


class AgentHello(DroppableFrame, frozen=True, kw_only=True, tag_field="type", tag="hello"):
    protocol: int
    agent_id: Id
    boot_id: Id
    engine_boot: str | None
    pid: int
    host: str
    packages: dict[str, str]
    gpus: list[str]
    gpu_order: Literal["PCI_BUS_ID"] | None
    groups: list[HeldGroup]
    tasks: list[HeldTask]
    received_seq: Natural


class AgentAccepted(DroppableFrame, frozen=True, kw_only=True, tag_field="type", tag="accepted"):
    task: Id


class AgentProgress(DroppableFrame, frozen=True, kw_only=True, tag_field="type", tag="progress"):
    task: Id
    rank: int
    phase: str
    done: Number
    total: Number | None
    metrics: dict[str, Number]


class AgentRendezvous(ReliableFrame, frozen=True, kw_only=True, tag_field="type", tag="rendezvous"):
    group: Id
    generation: Positive
    address: str
    port: Positive


class AgentLog(DroppableFrame, frozen=True, kw_only=True, tag_field="type", tag="log"):
    group: Id
    rank: int
    line: str


class AgentHeartbeat(DroppableFrame, frozen=True, kw_only=True, tag_field="type", tag="heartbeat"):
    groups: list[GroupState]


class AgentLeaving(DroppableFrame, frozen=True, kw_only=True, tag_field="type", tag="leaving"):
    grace_ms: Natural


class AgentAck(DroppableFrame, frozen=True, kw_only=True, tag_field="type", tag="ack"):
    received_seq: Natural


class AgentFenced(DroppableFrame, frozen=True, kw_only=True, tag_field="type", tag="fenced"):
    epoch: int


class AgentResult(ReliableFrame, frozen=True, kw_only=True, tag_field="type", tag="result"):
    task: Id
    outputs: list[Output]
    blobs: list[BlobRef]


class AgentError(ReliableFrame, frozen=True, kw_only=True, tag_field="type", tag="error"):
    task: Id
    failures: Annotated[list[FailureReport], Meta(min_length=1)]


class AgentGroup(ReliableFrame, frozen=True, kw_only=True, tag_field="type", tag="group"):
    group: Id
    generation: Positive
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
