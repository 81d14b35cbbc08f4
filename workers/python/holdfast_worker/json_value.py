"""What JSON can hold, for values whose shape is not ours: a row's columns, what `boot` tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    JsonValue: TypeAlias = (
        "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
    )
else:
    JsonValue = Any  # Whatever comes off a line is JSON: nothing is left to check.

JsonObject: TypeAlias = Mapping[str, JsonValue]
# A whole number stays one: as a float it would be written, and hashed, differently.
Number: TypeAlias = int | float
