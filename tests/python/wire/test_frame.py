"""Frames as objects of a line."""

from dataclasses import dataclass

import pytest

from holdfast_worker.wire.frame import Frame


@dataclass(frozen=True, kw_only=True)
class Moved(Frame):
    kind = "moved"
    x: int
    by: str | None = None


def test_a_frame_is_its_object_in_the_order_of_its_fields() -> None:
    sent = Moved(x=1, by="me").to_object()
    assert list(sent.items()) == [("type", "moved"), ("x", 1), ("by", "me")]
    assert Moved.of(sent) == Moved(x=1, by="me")
    assert Moved.of({"type": "moved", "x": 1}) == Moved(x=1)


@pytest.mark.parametrize("sent", [{"type": "moved"}, {"type": "moved", "x": 1, "y": 2}])
def test_a_missing_or_unknown_field_is_refused(sent: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        Moved.of(sent)
