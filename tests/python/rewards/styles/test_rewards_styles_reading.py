"""Answers of a reward function: what is a score."""

from typing import Any

import pytest

from holdfast_worker.rewards.styles.reading import NOT_APPLICABLE, BadReturn, checked


@pytest.mark.parametrize(
    "value",
    [
        "1",
        [1],
        float("inf"),
        {"metrics": {}},
        {"score": "None"},
        {"score": 1, "note": "good"},
        {"right": None},
    ],
)
def test_checked_refuses_what_is_no_score(value: Any) -> None:
    with pytest.raises(BadReturn):
        checked(value)


@pytest.mark.parametrize(
    "value", [None, {"score": None}, {"score": None, "right": None, "metrics": None}]
)
def test_checked_takes_none_as_nothing_to_grade_by(value: Any) -> None:
    assert checked(value) == NOT_APPLICABLE


def test_checked_takes_every_kind_of_number() -> None:
    import numpy

    assert [
        checked(value).value for value in (1, 0.5, True, numpy.float32(0.25), numpy.array(2))
    ] == [
        1.0,
        0.5,
        1.0,
        0.25,
        2.0,
    ]


def test_scores_of_tokens_take_the_place_of_the_score() -> None:
    numpy = pytest.importorskip("numpy")
    score = checked({"token_scores": numpy.array([0.5, 0.25]), "steps": 2}, 2)
    assert (score.value, score.tokens, score.metrics) == (0.75, [0.5, 0.25], {"steps": 2.0})
    for wrong, why in (
        ({"token_scores": [1.0]}, "expected 2, one for each token"),
        ({"token_scores": [1.0, float("nan")]}, "expected a finite number"),
        ({"token_scores": [1.0, 1.0], "score": 2.0}, "the score is the tokens' sum"),
    ):
        with pytest.raises(BadReturn, match=why):
            checked(wrong, 2)
