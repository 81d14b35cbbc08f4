"""The frames that Python knows are those of the protocol's schema, field for field."""

from __future__ import annotations

import dataclasses
import json
from typing import get_type_hints

import pytest

from holdfast_worker.limits import SCHEMA
from holdfast_worker.wire import frames as wire_frames
from holdfast_worker.wire.frame import DroppableFrame, Frame, ReliableFrame
from holdfast_worker.wire.protocol import ENGINE_FRAMES, decode_engine, encode_agent
from wire_examples import example

BRANCHES = {
    side: {
        branch["properties"]["type"]["const"]: branch for branch in SCHEMA["$defs"][side]["oneOf"]
    }
    for side in ("AgentMessage", "EngineMessage")
}
AGENT_FRAMES = {
    one.kind: one
    for one in vars(wire_frames).values()
    if isinstance(one, type)
    and issubclass(one, (DroppableFrame, ReliableFrame))
    and one not in (DroppableFrame, ReliableFrame)
}


def fields_of(frame: type[Frame]) -> set[str]:
    return {field.name for field in dataclasses.fields(frame)}


def example_of(frame: type[Frame]) -> Frame:
    hints = get_type_hints(frame, include_extras=True)
    return frame(**{name: example(hints[name]) for name in fields_of(frame)})


def test_every_message_of_the_protocol_is_a_frame_with_its_fields() -> None:
    for kind, branch in BRANCHES["EngineMessage"].items():
        assert {"type", *fields_of(ENGINE_FRAMES[kind])} == set(branch["properties"])
    for kind, branch in BRANCHES["AgentMessage"].items():
        own = {"seq"} if issubclass(AGENT_FRAMES[kind], ReliableFrame) else set()
        assert {"type", *own, *fields_of(AGENT_FRAMES[kind])} == set(branch["properties"])
    assert set(ENGINE_FRAMES) == set(BRANCHES["EngineMessage"])
    assert set(AGENT_FRAMES) == set(BRANCHES["AgentMessage"])


@pytest.mark.parametrize("kind", sorted(BRANCHES["EngineMessage"]))
def test_what_the_engine_sends_is_read_as_its_frame(kind: str) -> None:
    frame = example_of(ENGINE_FRAMES[kind])
    assert decode_engine(json.dumps(frame.to_object())) == frame


@pytest.mark.parametrize("kind", sorted(BRANCHES["AgentMessage"]))
def test_what_the_agent_sends_is_what_the_schema_allows(kind: str) -> None:
    frame = example_of(AGENT_FRAMES[kind])
    seq = 3 if isinstance(frame, ReliableFrame) else None
    sent = json.loads(encode_agent(frame, seq=seq))
    own = {} if seq is None else {"seq": seq}
    assert sent == {"type": kind, **vars(frame), **own}


def test_a_group_that_one_host_has_whole_is_started_without_a_part() -> None:
    start = example_of(wire_frames.EngineStartGroup).to_object()
    del start["part"]
    frame = decode_engine(json.dumps(start))
    assert isinstance(frame, wire_frames.EngineStartGroup)
    assert frame.part is None
