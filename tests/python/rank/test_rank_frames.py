"""What agent and rank say to each other. A version's agent may start the ranks of the next one."""

from typing import cast

import pytest

from holdfast_worker.operation import RankContext
from holdfast_worker.rank.channel import HEADER, pack, unpack
from holdfast_worker.rank.failures import report
from holdfast_worker.rank.frames import (
    AskRank,
    CancelRank,
    RankBlob,
    RankError,
    RankFrame,
    RankProgress,
    RankReady,
    RankResult,
    ShutDownRank,
    StartRank,
    read_from_rank,
    read_to_rank,
)
from holdfast_worker.wire.received import plain
from holdfast_worker.wire.types import Arguments

CONTEXT = RankContext("trainer", "trainer", 1, 0, 1, {"zero": 2}, "artifacts")
SENT: list[tuple[RankFrame, dict[str, object]]] = [
    (
        StartRank(module="m", context=CONTEXT),
        {
            "type": "start",
            "module": "m",
            "context": {
                "role": "trainer",
                "group": "trainer",
                "generation": 1,
                "rank": 0,
                "world_size": 1,
                "spec": {"zero": 2},
                "artifacts_dir": "artifacts",
                "master_addr": "127.0.0.1",
                "master_port": 0,
                "log_dir": "",
                "home": "",
            },
        },
    ),
    (
        AskRank(task="t", key="k", attempt=2, op="train", args=Arguments(json="{}")),
        {
            "type": "task",
            "task": "t",
            "key": "k",
            "attempt": 2,
            "op": "train",
            "args": {"json": "{}"},
        },
    ),
    (CancelRank(task="t"), {"type": "cancel", "task": "t"}),
    (ShutDownRank(), {"type": "shutdown"}),
]
FAILURE = report(1, cause="other", message="m")
HEARD: list[tuple[RankFrame, dict[str, object]]] = [
    (RankReady(info={"device": "cpu"}), {"type": "ready", "info": {"device": "cpu"}}),
    (
        RankProgress(task="t", phase="p", done=1.0, total=None, metrics={"loss": 0.5}),
        {
            "type": "progress",
            "task": "t",
            "phase": "p",
            "done": 1.0,
            "total": None,
            "metrics": {"loss": 0.5},
        },
    ),
    (
        RankBlob(task="t", index=0, data=b"\x00"),
        {"type": "blob", "task": "t", "index": 0, "data": b"\x00"},
    ),
    (
        RankResult(task="t", output="{}", blobs=1),
        {"type": "result", "task": "t", "output": "{}", "blobs": 1},
    ),
    (
        RankError(task=None, failure=FAILURE),
        {"type": "error", "task": None, "failure": plain(FAILURE)},
    ),
]


@pytest.mark.parametrize(("frame", "sent"), [*SENT, *HEARD], ids=lambda one: type(one).__name__)
def test_the_bytes_of_a_message_are_those_of_its_object(
    frame: RankFrame, sent: dict[str, object]
) -> None:
    assert pack(frame.to_object()) == pack(sent)


@pytest.mark.parametrize(("frame", "sent"), SENT, ids=lambda one: type(one).__name__)
def test_a_rank_reads_what_its_agent_sent(frame: RankFrame, sent: dict[str, object]) -> None:
    assert read_to_rank(unpack(pack(sent)[HEADER.size :])) == frame


@pytest.mark.parametrize(("frame", "sent"), HEARD, ids=lambda one: type(one).__name__)
def test_an_agent_reads_what_its_rank_sent(frame: RankFrame, sent: dict[str, object]) -> None:
    assert read_from_rank(unpack(pack(sent)[HEADER.size :])) == frame


@pytest.mark.parametrize(("frame", "sent"), SENT, ids=lambda one: type(one).__name__)
def test_a_rank_ignores_a_field_of_a_later_version(
    frame: RankFrame, sent: dict[str, object]
) -> None:
    assert read_to_rank({**sent, "later": 1}) == frame


@pytest.mark.parametrize(("frame", "sent"), HEARD, ids=lambda one: type(one).__name__)
def test_an_agent_ignores_a_field_of_a_later_version(
    frame: RankFrame, sent: dict[str, object]
) -> None:
    assert read_from_rank({**sent, "later": 1}) == frame


def test_a_report_of_a_later_version_is_read_without_what_it_adds() -> None:
    failure = {**cast("dict[str, object]", plain(FAILURE)), "later": 1}
    read = read_from_rank({"type": "error", "task": None, "failure": failure})
    assert read == RankError(task=None, failure=FAILURE)


def test_a_context_of_a_later_version_is_read_without_what_it_adds() -> None:
    frame, sent = SENT[0]
    context = cast("dict[str, object]", sent["context"])
    assert read_to_rank({**sent, "context": {**context, "later": 1}}) == frame


def test_a_type_that_neither_of_them_knows_is_ignored() -> None:
    assert read_to_rank({"type": "ready", "info": {}}) is None
    assert read_from_rank({"type": "later"}) is None


def test_a_message_that_lacks_a_field_is_refused() -> None:
    with pytest.raises(TypeError):
        read_to_rank({"type": "cancel"})
    with pytest.raises(TypeError):
        read_from_rank({"type": "ready"})
