"""Every frame, as it is on the line."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from msgspec import UNSET

from holdfast_worker.wire.frame import DroppableFrame, ReliableFrame
from holdfast_worker.wire.frames import EngineFrame, EngineStartGroup
from holdfast_worker.wire.protocol import decode_engine, encode_agent
from holdfast_worker.wire.received import decode, plain
from wire_examples import AGENT_FRAMES, example, frames_of

ENGINE_FRAMES = {str(one.__struct_config__.tag): one for one in get_args(EngineFrame)}


def test_every_frame_is_of_the_engine_or_may_be_lost_or_is_numbered() -> None:
    assert set(frames_of(DroppableFrame)) & set(frames_of(ReliableFrame)) == set()
    assert {"welcome", "task", "ack"} < set(ENGINE_FRAMES)
    assert {"hello", "heartbeat", "ack"} < set(frames_of(DroppableFrame))
    assert {"result", "error", "group"} < set(frames_of(ReliableFrame))


@pytest.mark.parametrize("kind", sorted(ENGINE_FRAMES))
def test_what_the_engine_sends_is_read_as_its_frame(kind: str) -> None:
    sent = example(ENGINE_FRAMES[kind])
    frame = decode_engine(json.dumps(sent))
    assert (type(frame), frame.kind) == (ENGINE_FRAMES[kind], kind)
    assert plain(frame) == sent


@pytest.mark.parametrize("kind", sorted(AGENT_FRAMES))
def test_what_the_agent_sends_has_its_fields_in_their_order(kind: str) -> None:
    frame = decode(AGENT_FRAMES[kind], example(AGENT_FRAMES[kind]))
    seq = 3 if isinstance(frame, ReliableFrame) else None
    sent = json.loads(encode_agent(frame, seq=seq))
    seq_field = {} if seq is None else {"seq": seq}
    assert list(sent.items()) == list({**example(AGENT_FRAMES[kind]), **seq_field}.items())


def test_a_group_that_one_host_has_whole_is_started_without_a_part() -> None:
    frame = decode_engine(json.dumps(example(EngineStartGroup)))
    assert isinstance(frame, EngineStartGroup)
    assert frame.part is UNSET
