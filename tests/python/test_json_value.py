"""Values whose shape is not ours."""

import pytest

from holdfast_worker.json_value import JsonValue
from holdfast_worker.wire.check import check_of


@pytest.mark.parametrize("value", [None, True, 1, 0.5, "a", [1, "a"], {"a": [{}]}])
def test_nothing_that_json_holds_is_refused(value: JsonValue) -> None:
    assert check_of(JsonValue)(value) is None
    assert check_of(dict[str, JsonValue])({"field": value}) is None
