"""Tasks of verifiers v1, through a real pool."""

from typing import Any

from styled_rewards import samples, scored


def test_a_task_of_verifiers_v1_is_made_of_the_row_and_its_rewards_are_weighted(
    score: Any,
) -> None:
    results = score("verifiers_1:AdditionTask", samples(" 12", "1234", columns={"answer": 12}))
    assert scored(results) == [2.0, 0.5]
    assert results[0]["metrics"] == {
        "exact_match": 1.0,
        "short": 1.0,
        "turns": 1.0,
        "characters": 2.0,
    }
    assert scored(score("verifiers_1:one", samples("2", "3", answer="2"))) == [1.0, 0.0]
