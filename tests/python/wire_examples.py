"""A value of every type that `wire.types` declares."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from holdfast_worker.wire.wire import Whole

PLAIN = {str: "text", bool: True, int: 3, float: 0.5, Any: {"any": 1}}


def example(hint: Any) -> Any:
    """As it comes off the line, without optional fields."""
    if hint in PLAIN:
        return PLAIN[hint]
    if is_typeddict(hint) or (isinstance(hint, type) and issubclass(hint, Whole)):
        fields = get_type_hints(hint, include_extras=True).items()
        return {
            name.removesuffix("_"): example(one)
            for name, one in fields
            if get_origin(one) is not NotRequired
        }
    parts = get_args(hint)
    if get_origin(hint) is list:
        return [example(parts[0])]
    if get_origin(hint) is dict:
        return {"key": example(parts[1])}
    return parts[0] if get_origin(hint) is Literal else example(parts[0])
