import json

import msgpack
import pytest

from holdfast_worker.wire.frames import AgentAccepted, AgentResult, EngineCancel
from holdfast_worker.wire.protocol import (
    FRAME_BYTES_MAX,
    ProtocolError,
    blob_frames,
    check,
    decode_engine,
    encode_agent,
)

CANCEL = {"type": "cancel", "epoch": 3, "seq": 7, "task": "t"}


def test_decode_engine_takes_what_the_schema_allows() -> None:
    assert decode_engine(json.dumps(CANCEL)) == EngineCancel(epoch=3, seq=7, task="t")


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({**CANCEL, "seq": 0}, "at seq"),
        ({**CANCEL, "extra": 1}, "extra"),
        (
            {key: value for key, value in CANCEL.items() if key != "epoch"},
            "'epoch' is a required property",
        ),
        ({**CANCEL, "type": "canzel"}, "'canzel'"),
        ([CANCEL], "type None"),
    ],
)
def test_decode_engine_says_where_a_message_is_wrong(message: object, says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        decode_engine(json.dumps(message))


def test_decode_engine_refuses_text_that_is_not_json_and_binary_frames() -> None:
    with pytest.raises(ProtocolError, match="as JSON"):
        decode_engine("{")
    with pytest.raises(ProtocolError, match="binary frame of 2 bytes"):
        decode_engine(b"{}")


def test_encode_agent_refuses_what_the_engine_would_refuse() -> None:
    assert encode_agent(AgentAccepted(task="t")) == '{"type":"accepted","task":"t"}'
    sent = encode_agent(AgentResult(task="t", outputs=[], blobs=[]), seq=3)
    assert sent == '{"type":"result","task":"t","outputs":[],"blobs":[],"seq":3}'
    with pytest.raises(ProtocolError, match="'seq' is a required property"):
        encode_agent(AgentResult(task="t", outputs=[], blobs=[]))
    with pytest.raises(ProtocolError, match="at task"):
        encode_agent(AgentAccepted(task=""))
    with pytest.raises(ProtocolError, match="cause"):
        check(
            "AgentMessage",
            {
                "type": "error",
                "seq": 1,
                "task": "t",
                "failures": [{"rank": 0, "cause": "bad luck"}],
            },
        )


@pytest.mark.parametrize(
    "size", [0, 1, FRAME_BYTES_MAX - 4096, FRAME_BYTES_MAX, 2 * FRAME_BYTES_MAX + 1]
)
def test_blob_frames_are_small_enough_and_together_the_blob(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"\x07" * (size % 256)
    frames = list(blob_frames("t" * 200, 3, data))
    assert all(len(frame) <= FRAME_BYTES_MAX for frame in frames)
    pieces = [msgpack.unpackb(frame) for frame in frames]
    assert b"".join(piece["data"] for piece in pieces) == data
    assert {(piece["task"], piece["blob"], piece["total"]) for piece in pieces} == {
        ("t" * 200, 3, size)
    }
    assert [piece["offset"] for piece in pieces] == [
        sum(len(p["data"]) for p in pieces[:i]) for i in range(len(pieces))
    ]
