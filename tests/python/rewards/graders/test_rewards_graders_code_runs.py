"""Cases run one after the other within limits of CPU time, whatever the clock says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast_worker.rewards.graders.code_runs import Times, outcomes_of
from holdfast_worker.rewards.sandbox.cpu_time import CpuTime
from holdfast_worker.rewards.sandbox.started import Ended, Outcome, OutOfTime


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Cases:
    """Each works for its seconds of CPU time, and is right if it may. The machine is `load` times
    as slow as an idle one; a case of None waits for what never comes.
    """

    def __init__(self, clock: Clock, *seconds: float | None, load: float) -> None:
        self._clock = clock
        self._used_s = 0.0
        self._load = load
        self._seconds: Iterator[float | None] = iter(seconds)
        self.count = len(seconds)
        self.is_closed = False
        self.cpu = CpuTime(read=lambda _: self._used_s, clock=clock)
        self.cpu.begins(1)

    def ready(self) -> None:
        self._clock.now += 100  # Not in any case's time.
        self._used_s += 10

    def case(self, number: int, deadline: float) -> Outcome:
        seconds = next(self._seconds)
        while seconds is None or seconds > 0:
            if self.cpu.is_used_up():
                raise Ended("timeout", "it used its CPU time")
            if self._clock.now > deadline:
                raise OutOfTime
            if seconds is not None:
                self._used_s += 0.125
                seconds -= 0.125
            self._clock.now += 0.125 * self._load
        return "wrong" if number == 3 else "right"

    def close(self) -> None:
        self.is_closed = True


def outcomes(
    *seconds: float | None, all_or_nothing: bool = False, load: float = 1
) -> list[Outcome]:
    clock = Clock()
    cases = Cases(clock, *seconds, load=load)
    try:
        times = Times(case_s=2, total_s=5, slowed=4)
        return outcomes_of(cases, times, all_or_nothing=all_or_nothing, clock=clock)
    finally:
        assert cases.is_closed


@pytest.mark.parametrize("load", [1, 2, 3.9])
def test_a_case_has_its_own_cpu_time_and_all_have_one_together_whatever_the_load(
    load: float,
) -> None:
    assert outcomes(1, 3, 0.5, 0.25, load=load) == ["right", "timeout", "right", "wrong"]
    assert outcomes(1.875, 2.5, 2, 0.5, load=load) == ["right", "timeout", "timeout", "timeout"]


def test_what_waits_or_is_starved_is_no_verdict() -> None:
    with pytest.raises(OutOfTime):
        outcomes(1, None)
    with pytest.raises(OutOfTime):
        outcomes(1, 1.875, load=50)


def test_all_or_nothing_stops_at_the_first_that_is_not_right() -> None:
    assert outcomes(1, 3, 0, 0, all_or_nothing=True) == ["right", *["timeout"] * 3]
    assert outcomes(1, 1, 1, all_or_nothing=True) == ["right"] * 3
