"""Holdfast's own signature."""

from typing import Any

from holdfast_worker.rewards.styles.holdfast import HOLDFAST, row_of
from holdfast_worker.rewards.styles.reading import Score
from holdfast_worker.rewards.styles.target import Target
from styled_rewards import samples


def test_a_function_gets_what_it_names_and_the_reference_answer() -> None:
    def function(completion: str, tokens: int, answer: str, unit: str = "none") -> dict[str, Any]:
        return {"score": float(completion == answer), "tokens": tokens, "unit": len(unit)}

    scorer = HOLDFAST.bind(Target.of(function))
    assert scorer.needs == ("answer",)
    batch: Any = samples("22", answer="22", columns={"answer": "so #### 22", "unit": "m"})
    assert scorer.score(batch, lambda value: value) == [Score(1.0, {"tokens": 2.0, "unit": 1.0})]
    assert row_of(batch[0]) == {"answer": "22", "unit": "m"}


def test_any_function_may_be_of_this_style_and_nothing_else() -> None:
    assert HOLDFAST.recognise(Target.of(lambda completion, row: 1)) == (
        "its parameters completion and row"
    )
    assert HOLDFAST.recognise(Target.of(lambda unit: 1)) is not None
    assert HOLDFAST.recognise(Target.of(5)) is HOLDFAST.recognise(Target.of(int)) is None
