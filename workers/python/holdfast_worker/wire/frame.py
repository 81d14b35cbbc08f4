"""
What is sent between engine, agent and ranks: frozen dataclasses in the program, objects with a
`type` on the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, kw_only=True)
class Frame:
    """`kind` is its `type` on the line."""

    kind: ClassVar[str]

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Self:
        """The frame of an object. Raises TypeError if a field is missing or unknown."""
        return cls(**{name: value for name, value in sent.items() if name != "type"})

    def to_object(self) -> dict[str, object]:
        """A new one, with its `type`."""
        return {"type": self.kind, **vars(self)}


class DroppableFrame(Frame):
    """The line may lose it."""


class ReliableFrame(Frame):
    """The line numbers it, and sends it again until it has arrived."""
