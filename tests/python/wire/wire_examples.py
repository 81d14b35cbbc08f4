"""A value of every type that `wire` declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from holdfast_worker.wire import frames as wire_frames
from holdfast_worker.wire.frame import DroppableFrame, Frame, ReliableFrame
from holdfast_worker.wire.received import OneOf, Received, decode

PLAIN = {str: "text", bool: True, int: 3, float: 0.5, Any: {"any": 1}}


def example(hint: Any) -> Any:
    """As it comes off the line, without what may be left out."""
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Received):
        config, fields = hint.__struct_config__, msgspec.structs.fields(hint)
        tag = {config.tag_field: config.tag} if config.tag_field else {}
        required = (
            fields[:1] if issubclass(hint, OneOf) else [one for one in fields if one.required]
        )
        return {**tag, **{one.encode_name: example(one.type) for one in required}}
    parts = get_args(hint)
    if get_origin(hint) is Annotated:
        return example(parts[0])
    if get_origin(hint) is list:
        return [example(parts[0])]
    if get_origin(hint) is dict:
        return {"key": example(parts[1])}
    return parts[0] if get_origin(hint) is Literal else example(parts[0])


def frames_of(base: type[Frame]) -> dict[str, type[Any]]:
    """Those of `wire.frames` that are a `base`, by their `type` on the line."""
    return {
        str(one.__struct_config__.tag): one
        for one in vars(wire_frames).values()
        if isinstance(one, type)
        and one.__module__ == wire_frames.__name__
        and issubclass(one, base)
    }


AGENT_FRAMES = frames_of(DroppableFrame) | frames_of(ReliableFrame)


def checked_of_agent(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as the hub takes it from an agent."""
    frame = AGENT_FRAMES[message["type"]]
    decode(frame, {name: value for name, value in message.items() if name != "seq"})
    assert ("seq" in message) == issubclass(frame, ReliableFrame)
    return dict(message)
