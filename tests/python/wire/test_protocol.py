import json

import msgpack
import pytest
from msgspec.structs import replace

from holdfast_worker.rank.failures import report
from holdfast_worker.wire.frames import AgentAccepted, AgentError, AgentResult, EngineCancel
from holdfast_worker.wire.protocol import (
    FRAME_BYTES_MAX,
    ProtocolError,
    blob_frames,
    decode_engine,
    encode_agent,
)

CANCEL = {"type": "cancel", "epoch": 3, "seq": 7, "task": "t"}


def test_decode_engine_reads_a_message_as_its_frame() -> None:
    assert decode_engine(json.dumps(CANCEL)) == EngineCancel(epoch=3, seq=7, task="t")


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({**CANCEL, "seq": 0}, "message 'cancel' because seq is wrong: Expected `int` >= 1"),
        ({**CANCEL, "seq": True}, "seq is wrong: Expected `int`, got `bool`"),
        ({**CANCEL, "task": ""}, "task is wrong: Expected `str` of length >= 1"),
        ({**CANCEL, "extra": 1}, "unknown field `extra`"),
        (
            {key: value for key, value in CANCEL.items() if key != "epoch"},
            "missing required field `epoch`",
        ),
        ({**CANCEL, "type": "canzel"}, "message 'canzel' because type is wrong"),
        ([CANCEL], "message None because it is wrong: Expected `object`, got `array`"),
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
    with pytest.raises(ProtocolError, match="'result' as message None: reliable"):
        encode_agent(AgentResult(task="t", outputs=[], blobs=[]))
    with pytest.raises(ProtocolError, match="'accepted' as message 1: reliable"):
        encode_agent(AgentAccepted(task="t"), seq=1)
    with pytest.raises(ProtocolError, match=r"length >= 1 - at `\$.task`"):
        encode_agent(AgentAccepted(task=""))
    failure = replace(report(0, cause="other", message="m"), cause="bad luck")
    with pytest.raises(ProtocolError, match=r"'bad luck' - at `\$.failures\[0\].cause`"):
        encode_agent(AgentError(task="t", failures=[failure]), seq=1)
    with pytest.raises(ProtocolError, match=r"length >= 1 - at `\$.failures`"):
        encode_agent(AgentError(task="t", failures=[]), seq=1)
    failure = report(0, cause="other", message="m")
    with pytest.raises(ProtocolError, match=r"length <= 40 - at `\$.failures\[0\].log_tail`"):
        long = replace(failure, log_tail=["line"] * 41)
        encode_agent(AgentError(task="t", failures=[long]), seq=1)
    with pytest.raises(ValueError, match="not JSON compliant"):
        endless = replace(failure, at_ms=float("nan"))
        encode_agent(AgentError(task="t", failures=[endless]), seq=1)


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
