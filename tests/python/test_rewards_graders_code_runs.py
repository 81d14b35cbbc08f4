"""Cases run one after the other within two time limits, by a clock of the test."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast_worker.rewards.graders.code_runs import outcomes_of
from holdfast_worker.rewards.sandbox.started import Ended, Outcome


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Cases:
    """Each takes its seconds, and is right if they are within its deadline."""

    def __init__(self, clock: Clock, *seconds: float) -> None:
        self._clock = clock
        self._seconds: Iterator[float] = iter(seconds)
        self.count = len(seconds)
        self.is_closed = False

    def ready(self) -> None:
        self._clock.now += 100  # Not in any case's time.

    def case(self, number: int, deadline: float) -> Outcome:
        self._clock.now += next(self._seconds)
        if self._clock.now > deadline:
            raise Ended("timeout", "too late")
        return "wrong" if number == 3 else "right"

    def close(self) -> None:
        self.is_closed = True


def outcomes(*seconds: float, all_or_nothing: bool = False) -> list[Outcome]:
    clock = Clock()
    cases = Cases(clock, *seconds)
    found = outcomes_of(cases, case_s=2, total_s=5, all_or_nothing=all_or_nothing, clock=clock)
    assert cases.is_closed
    return found


def test_a_case_has_its_own_time_and_all_cases_have_one_together() -> None:
    assert outcomes(1, 3, 0.5, 0.25) == ["right", "timeout", "right", "wrong"]
    assert outcomes(2, 2, 2, 0) == ["right", "right", "timeout", "timeout"]


def test_all_or_nothing_stops_at_the_first_that_is_not_right() -> None:
    assert outcomes(1, 3, 0, 0, all_or_nothing=True) == ["right", *["timeout"] * 3]
    assert outcomes(1, 1, 1, all_or_nothing=True) == ["right"] * 3
