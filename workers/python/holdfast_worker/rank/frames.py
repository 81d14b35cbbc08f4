"""
What agent and rank say to each other on the rank's channel, as MessagePack of the objects that
`to_object` makes. An agent outlives its engine: if another release resumes the run (`--accept`), it
may start ranks of that one. So fields stay, and what a later release adds, a type or a field, is
ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from holdfast_worker.json_value import JsonValue
from holdfast_worker.operation import RankContext
from holdfast_worker.wire.frames import FailureReport
from holdfast_worker.wire.received import decode, plain
from holdfast_worker.wire.types import Arguments

if TYPE_CHECKING:
    from typing import Self


def known_fields(kind: type[Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """Without the fields that a later version added to the dataclass."""
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in sent.items() if name in names}


@dataclass(frozen=True, kw_only=True)
class RankFrame:
    """`kind` is its `type` on the channel."""

    kind: ClassVar[str]

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Self:
        """The frame of an object. Raises TypeError if a field is missing."""
        return cls(**known_fields(cls, sent))

    def to_object(self) -> dict[str, object]:
        """A new one, with its `type`."""
        return {"type": self.kind, **vars(self)}


@dataclass(frozen=True, kw_only=True)
class StartRank(RankFrame):
    """The first. `module` has the role's `Worker` class."""

    kind = "start"
    module: str
    context: RankContext

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Self:
        return cls(
            module=sent["module"], context=RankContext(**known_fields(RankContext, sent["context"]))
        )

    def to_object(self) -> dict[str, object]:
        return {**super().to_object(), "context": vars(self.context)}


@dataclass(frozen=True, kw_only=True)
class AskRank(RankFrame):
    """An operation, to be answered by RankResult or RankError."""

    kind = "task"
    task: str
    key: str
    attempt: int
    op: str
    args: Arguments

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Self:
        return super().of({**sent, "args": decode(Arguments, sent["args"])})

    def to_object(self) -> dict[str, object]:
        return {**super().to_object(), "args": plain(self.args)}


@dataclass(frozen=True, kw_only=True)
class CancelRank(RankFrame):
    kind = "cancel"
    task: str


@dataclass(frozen=True, kw_only=True)
class ShutDownRank(RankFrame):
    kind = "shutdown"


@dataclass(frozen=True, kw_only=True)
class RankReady(RankFrame):
    """`info`: what the worker's `boot` told."""

    kind = "ready"
    info: dict[str, JsonValue]


@dataclass(frozen=True, kw_only=True)
class RankProgress(RankFrame):
    kind = "progress"
    task: str
    phase: str
    done: float
    total: float | None
    metrics: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class RankBlob(RankFrame):
    """One of a result's, in their order, before it. Of rank 0 alone."""

    kind = "blob"
    task: str
    index: int
    data: bytes


@dataclass(frozen=True, kw_only=True)
class RankResult(RankFrame):
    """`output`: JSON. `blobs`: how many the operation made."""

    kind = "result"
    task: str
    output: str
    blobs: int


@dataclass(frozen=True, kw_only=True)
class RankError(RankFrame):
    """`task` is None of a rank that could not start."""

    kind = "error"
    task: str | None
    failure: FailureReport

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Self:
        known = FailureReport.__struct_fields__
        failure = {name: value for name, value in sent["failure"].items() if name in known}
        return super().of({**sent, "failure": decode(FailureReport, failure)})

    def to_object(self) -> dict[str, object]:
        return {**super().to_object(), "failure": plain(self.failure)}


ToRank = StartRank | AskRank | CancelRank | ShutDownRank
FromRank = RankReady | RankProgress | RankBlob | RankResult | RankError

TO_RANK: dict[str, type[ToRank]] = {one.kind: one for one in get_args(ToRank)}
FROM_RANK: dict[str, type[FromRank]] = {one.kind: one for one in get_args(FromRank)}


def read_to_rank(sent: Mapping[str, Any]) -> ToRank | None:
    """None: of a type that this version does not know. Raises TypeError if a field is missing."""
    kind = TO_RANK.get(sent["type"])
    return kind and kind.of(sent)


def read_from_rank(sent: Mapping[str, Any]) -> FromRank | None:
    """None: of a type that this version does not know. Raises TypeError if a field is missing."""
    kind = FROM_RANK.get(sent["type"])
    return kind and kind.of(sent)
