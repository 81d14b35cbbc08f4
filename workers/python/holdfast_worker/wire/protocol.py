"""
The messages between a host's agent and the engine's hub, checked with the schema made from
`workers/line/protocol.ts`.

Control is JSON in text frames. Data is MessagePack in binary frames. Sizes are those of
`workers/line/limits.ts`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Literal, cast, get_args

import msgpack
from jsonschema import Draft202012Validator

from holdfast_worker.json_value import JsonObject
from holdfast_worker.limits import FRAME_BYTES_MAX, MESSAGE_BYTES_MAX, SCHEMA
from holdfast_worker.wire.frame import DroppableFrame, ReliableFrame
from holdfast_worker.wire.frames import EngineFrame

PROTOCOL_VERSION: int = SCHEMA["version"]
BLOB_CHUNK = FRAME_BYTES_MAX - 4_096  # Leaves room for the frame's own keys and task id.

ENGINE_FRAMES: dict[str, type[EngineFrame]] = {one.kind: one for one in get_args(EngineFrame)}

Side = Literal["AgentMessage", "EngineMessage"]


class ProtocolError(Exception):
    """
    A message does not have the shape that both sides agreed on: the two are of different versions.
    """


class TooLarge(Exception):
    """A message that is too large for the connection."""


@cache
def _validators(side: Side) -> dict[str, Draft202012Validator]:
    """
    One validator per message type: a union's own error would not say which branch was intended.
    """
    branches = SCHEMA["$defs"][side]["oneOf"]
    return {
        branch["properties"]["type"]["const"]: Draft202012Validator(branch) for branch in branches
    }


def check(side: Side, message: object) -> JsonObject:
    """The message, if the schema allows it."""
    fields: JsonObject = cast("JsonObject", message) if isinstance(message, dict) else {}
    kind = fields.get("type")
    validator = _validators(side).get(kind) if isinstance(kind, str) else None
    if validator is None:
        known = ", ".join(sorted(_validators(side)))
        raise ProtocolError(f"Cannot read a message of type {kind!r}: {side} has {known}")
    error = next(iter(validator.iter_errors(fields)), None)
    if error is not None:
        place = "/".join(str(part) for part in error.absolute_path) or "(top)"
        raise ProtocolError(f"Cannot read a '{kind}' message: at {place}: {error.message[:300]}")
    return fields


def decode_engine(text: str | bytes) -> EngineFrame:
    """A control frame from the engine."""
    if isinstance(text, bytes):
        raise ProtocolError(
            f"Cannot read a binary frame of {len(text)} bytes: the engine sends text frames only"
        )
    try:
        message = json.loads(text)
    except ValueError as error:
        raise ProtocolError(f"Cannot read a control frame as JSON: {error}") from None
    fields = check("EngineMessage", message)
    return ENGINE_FRAMES[str(fields["type"])].of(fields)


def encode_agent(frame: DroppableFrame | ReliableFrame, *, seq: int | None = None) -> str:
    """A control frame to the engine, in ASCII; `seq` of a reliable one. Raises TooLarge."""
    message = frame.to_object() if seq is None else {**frame.to_object(), "seq": seq}
    text = json.dumps(check("AgentMessage", message), separators=(",", ":"), allow_nan=False)
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
