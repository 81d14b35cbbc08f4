"""The flight recorder of stuck collectives."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast_worker.rank import flight_recorder


def test_flight_recorder_asks_only_ranks_that_listen(tmp_path: Path) -> None:
    place = {"generation": 2, "ranks": range(2)}
    assert not flight_recorder.ask(str(tmp_path), "trainer", **place)
    pipe = f"{flight_recorder.prefix(str(tmp_path), 'trainer', 2)}1.pipe"
    os.mkfifo(pipe)
    assert not flight_recorder.ask(
        str(tmp_path), "trainer", **place
    )  # torch made it, and has died.
    listener = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert flight_recorder.ask(str(tmp_path), "trainer", **place)
        assert os.read(listener, 10) == b"1"
    finally:
        os.close(listener)
    flight_recorder.clean(str(tmp_path), "trainer", **place)
    assert not os.path.exists(pipe)
