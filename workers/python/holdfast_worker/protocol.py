"""
The messages between a host's agent and the engine's hub, checked with the schema made from
`workers/protocol.ts`.

Control is JSON in text frames. Data is MessagePack in binary frames. Sizes are those of
`workers/limits.ts`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

import msgpack
from jsonschema import Draft202012Validator

from holdfast_worker.limits import FRAME_BYTES_MAX, MESSAGE_BYTES_MAX, SCHEMA

PROTOCOL_VERSION: int = SCHEMA["version"]
BLOB_CHUNK = FRAME_BYTES_MAX - 4_096  # Leaves room for the frame's own keys and task id.

Side = Literal["AgentMessage", "EngineMessage"]


class ProtocolError(Exception):
    """
    A message does not have the shape that both sides agreed on: the two are of different versions.
    """


class TooLarge(Exception):
    """A message that the line does not carry."""


@cache
def _validators(side: Side) -> dict[str, Draft202012Validator]:
    """One validator per message type: a union's own error would not say which branch was meant."""
    branches = SCHEMA["$defs"][side]["oneOf"]
    return {
        branch["properties"]["type"]["const"]: Draft202012Validator(branch) for branch in branches
    }


def check(side: Side, message: Any) -> dict[str, Any]:
    """The message, if the schema allows it."""
    kind = message.get("type") if isinstance(message, dict) else None
    validator = _validators(side).get(kind) if isinstance(kind, str) else None
    if validator is None:
        known = ", ".join(sorted(_validators(side)))
        raise ProtocolError(f"Cannot read a message of type {kind!r}: {side} has {known}")
    error = next(iter(validator.iter_errors(message)), None)
    if error is not None:
        place = "/".join(str(part) for part in error.absolute_path) or "(top)"
        raise ProtocolError(f"Cannot read a '{kind}' message: at {place}: {error.message[:300]}")
    return message


def decode_engine(text: str | bytes) -> dict[str, Any]:
    """A control frame from the engine."""
    if isinstance(text, bytes):
        raise ProtocolError(
            f"Cannot read a binary frame of {len(text)} bytes: the engine sends text frames only"
        )
    try:
        message = json.loads(text)
    except ValueError as error:
        raise ProtocolError(f"Cannot read a control frame as JSON: {error}") from None
    return check("EngineMessage", message)


def encode_agent(message: dict[str, Any]) -> str:
    """A control frame to the engine, in ASCII. Raises TooLarge."""
    text = json.dumps(check("AgentMessage", message), separators=(",", ":"), allow_nan=False)
    if len(text) > MESSAGE_BYTES_MAX:
        raise TooLarge(
            f"Cannot send '{message['type']}' because it has {len(text)} bytes: a message holds "
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
