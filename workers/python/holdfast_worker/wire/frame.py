"""
What engine and agent send to each other: frozen in the program, objects with a `type` on the line.
"""

from __future__ import annotations

from holdfast_worker.wire.received import Received


class Frame(Received, frozen=True):
    """Base of the generated frames."""

    @property
    def kind(self) -> str:
        """Its `type` on the line."""
        return str(self.__struct_config__.tag)


class DroppableFrame(Frame, frozen=True):
    """The line may lose it."""


class ReliableFrame(Frame, frozen=True):
    """The line numbers it, and sends it again until it has arrived."""
