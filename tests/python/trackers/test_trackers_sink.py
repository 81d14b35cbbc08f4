from typing import cast

import pytest

from holdfast_worker.trackers.sink import Run, TrackerError, flat, sink_of
from in_trackers import RUN


def test_flat_names_what_is_inside() -> None:
    assert flat({"a": {"b": [1, {"c": None}]}, "d": [], "e": {}}) == {
        "a.b.0": 1,
        "a.b.1.c": None,
        "d": [],
        "e": {},
    }


def test_a_client_that_is_not_installed_is_one_sentence() -> None:
    run = cast(Run, {**RUN, "dir": "here", "home": "here"})
    with pytest.raises(TrackerError, match=r"^Cannot use tensorboard because its client is not"):
        sink_of({"name": "tensorboard", "dir": None}, run)
