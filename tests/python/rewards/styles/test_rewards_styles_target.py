"""Parameters of what a reward names."""

from typing import Any

import pytest

from holdfast_worker.rewards.styles.target import Target


def function(first: Any, /, second: Any, third: Any = 3, *, fourth: Any) -> None:
    del first, second, third, fourth


def test_a_target_has_parameters_by_name_and_by_place() -> None:
    target = Target.of(function)
    assert target.names == {"second", "third", "fourth"}
    assert target.places == ("first", "second", "third")
    assert target.required == {"first", "second", "fourth"}
    assert (target.takes_all, target.is_function) == (False, True)
    assert target.describe(("third", "other", "second")) == "its parameters third and second"
    assert target.accepted({"first": 1, "third": 2, "other": 3}) == {"third": 2}
    assert target.columns(("second",)) == {"third", "fourth"}


def test_a_class_and_an_object_have_no_parameters() -> None:
    for value in (int, 5, None):
        assert Target.of(value).names == frozenset()
        assert not Target.of(value).is_function


def test_what_cannot_be_called_so_says_what_it_needs() -> None:
    target = Target.of(function)
    with pytest.raises(TypeError, match="because 'first' is positional-only"):
        target.require_columns("trl")
    with pytest.raises(TypeError, match=r"takes \(first, second, third\) and needs fourth"):
        target.require_places("slime", 2)
    plain = Target.of(lambda a, b, c=1: None)
    plain.require_places("slime", 2)
    plain.require_names("verl", ("a", "b"))
    with pytest.raises(TypeError, match="needs b, and verl passes a"):
        plain.require_names("verl", ("a",))
