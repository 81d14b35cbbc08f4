"""
The messages between a host's agent and the engine's hub, checked by the classes that are generated
from `workers/line/protocol.ts`.

Control is JSON in text frames. Data is MessagePack in binary frames. Sizes are those of
`workers/line/limits.ts`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import msgpack
import msgspec

from holdfast_worker.json_value import JsonObject
from holdfast_worker.limits import FRAME_BYTES_MAX, MESSAGE_BYTES_MAX
from holdfast_worker.operation import BadDataError
from holdfast_worker.wire.frame import DroppableFrame, ReliableFrame
from holdfast_worker.wire.frames import EngineFrame
from holdfast_worker.wire.received import decode, plain

BLOB_CHUNK = FRAME_BYTES_MAX - 4_096  # Leaves room for the frame's own keys and task id.


class ProtocolError(Exception):
    """
    A message does not have the shape that both sides agreed on: the two are of different versions.
    """


class TooLarge(Exception):
    """A message that is too large for the connection."""


def decode_engine(text: str | bytes) -> EngineFrame:
    """A control frame from the engine."""
    if isinstance(text, bytes):
        raise ProtocolError(
            f"Cannot read a binary frame of {len(text)} bytes: the engine sends text frames only"
        )
    try:
        message: Any = json.loads(text)
    except ValueError as error:
        raise ProtocolError(f"Cannot read a control frame as JSON: {error}") from None
    kind = cast("JsonObject", message).get("type") if isinstance(message, dict) else None
    try:
        frames = cast("type[EngineFrame]", EngineFrame)
        return decode(frames, message, called=f"the engine's message {kind!r}")
    except BadDataError as error:
        raise ProtocolError(str(error)) from None


def encode_agent(frame: DroppableFrame | ReliableFrame, *, seq: int | None = None) -> str:
    """A control frame to the engine, in ASCII; `seq` of a reliable one. Raises TooLarge."""
    if isinstance(frame, ReliableFrame) != (seq is not None):
        raise ProtocolError(
            f"Cannot send '{frame.kind}' as message {seq}: reliable ones have a number"
        )
    message = plain(frame)
    try:  # Its class says what it holds and does not check it.
        msgspec.convert(message, type(frame))
    except msgspec.ValidationError as error:
        raise ProtocolError(
            f"Cannot send '{frame.kind}' because the engine would refuse it: {error}"
        ) from None
    numbered = message if seq is None else {**message, "seq": seq}
    text = json.dumps(numbered, separators=(",", ":"), allow_nan=False)
    if len(text) > MESSAGE_BYTES_MAX:
        raise TooLarge(
            f"Cannot send '{frame.kind}' because it has {len(text)} bytes: a message holds "
            f"at most {MESSAGE_BYTES_MAX}"
        )
    return text


def blob_frames(task: str, blob: int, data: bytes) -> Iterator[bytes]:
    """The binary frames of one blob of a task's result; one empty piece if it has no bytes."""
    view = memoryview(data)
    for offset in range(0, max(1, len(data)), BLOB_CHUNK):
        piece = {"task": task, "blob": blob, "offset": offset, "total": len(data)}
        yield msgpack.packb(
            {**piece, "data": bytes(view[offset : offset + BLOB_CHUNK])}, use_bin_type=True
        )
