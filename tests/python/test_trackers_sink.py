import pytest

from holdfast_worker.trackers.sink import TrackerError, flat, sink_of
from in_trackers import RUN


def test_flat_names_what_is_inside() -> None:
    assert flat({"a": {"b": [1, {"c": None}]}, "d": [], "e": {}}) == {
        "a.b.0": 1,
        "a.b.1.c": None,
        "d": [],
        "e": {},
    }


def test_a_client_that_is_not_installed_is_one_sentence() -> None:
    with pytest.raises(TrackerError, match=r"^Cannot use trackio because its client is not instal"):
        sink_of({"name": "trackio", "project": "p", "uri": None, "dir": None}, RUN).open()  # type: ignore[arg-type]
