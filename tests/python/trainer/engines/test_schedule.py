"""The learning rate's schedules."""

from __future__ import annotations

import pytest

from holdfast_worker.trainer.engines.schedule import check_schedule, factor
from holdfast_worker.wire.types import Schedule


def schedule(**fields):
    usual = {
        "name": "constant",
        "warmup_steps": 0,
        "stable_steps": 0,
        "total_steps": None,
        "min_ratio": 0.0,
    }
    return Schedule(**{**usual, **fields})


def test_factor_is_one_without_a_schedule():
    assert [factor(schedule(), step) for step in (0, 1, 1000)] == [1.0, 1.0, 1.0]


def test_factor_warms_up_to_one_at_the_last_warmup_step_and_is_never_zero():
    assert [factor(schedule(warmup_steps=4), step) for step in range(6)] == [
        0.25,
        0.5,
        0.75,
        1.0,
        1.0,
        1.0,
    ]


def test_factor_linear_falls_to_min_ratio_at_total_steps_and_stays():
    linear = schedule(name="linear", total_steps=4, min_ratio=0.5)
    assert [factor(linear, step) for step in (0, 1, 2, 3, 4, 9)] == [
        1.0,
        0.875,
        0.75,
        0.625,
        0.5,
        0.5,
    ]


def test_factor_cosine_is_half_way_down_in_the_middle():
    cosine = schedule(name="cosine", warmup_steps=2, total_steps=10, min_ratio=0.2)
    assert [factor(cosine, step) for step in (1, 2, 6, 10)] == pytest.approx([1.0, 1.0, 0.6, 0.2])


def test_factor_stays_at_one_for_the_stable_steps_and_then_falls_to_total_steps():
    stable = schedule(name="linear", warmup_steps=2, stable_steps=3, total_steps=9)
    assert [factor(stable, step) for step in range(10)] == pytest.approx(
        [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
    )
    assert factor(schedule(stable_steps=3), 100) == 1.0


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": "linear"}, "total_steps is null"),
        ({"name": "cosine", "warmup_steps": 5, "total_steps": 5}, "total_steps must be larger"),
        (
            {"name": "linear", "warmup_steps": 2, "stable_steps": 3, "total_steps": 5},
            "stable_steps 3: total_steps must be larger",
        ),
        ({"name": "step"}, "use constant, linear or cosine"),
    ],
)
def test_check_schedule_says_what_is_missing(fields, text):
    with pytest.raises(ValueError, match=text):
        check_schedule(schedule(**fields))
