"""Values whose shape is not ours."""

import pytest

from holdfast_worker.json_value import JsonValue, Number
from holdfast_worker.wire.received import decode


@pytest.mark.parametrize("value", [None, True, 1, 0.5, "a", [1, "a"], {"a": [{}]}])
def test_nothing_that_json_holds_is_refused(value: JsonValue) -> None:
    assert decode(JsonValue, value) == value
    assert decode(dict[str, JsonValue], {"field": value}) == {"field": value}


@pytest.mark.parametrize("value", [1, 1.0, 2**70])
def test_a_number_is_whole_or_not_as_it_came(value: Number) -> None:
    assert repr(decode(Number, value)) == repr(value)
