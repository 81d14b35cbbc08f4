"""Functions and rubrics of verifiers 0.x, through a real pool."""

from typing import Any

from styled_rewards import CHAT, samples, scored


def test_verifiers_0_gets_messages_info_and_state(score: Any) -> None:
    columns = {"answer": "2", "info": '{"factor": 3}'}
    results = score("verifiers_0:right", samples("2", "3", row_prompt=CHAT, columns=columns))
    assert scored(results) == [3.0, 0.0]
    results = score("verifiers_0:shortest", samples("22", "3", row_prompt=CHAT, answer="2"))
    assert scored(results) == [0.0, 1.0]


def test_a_rubric_of_verifiers_sums_its_functions_and_one_that_raises_costs_one_sample(
    score: Any,
) -> None:
    batch = samples("x = 2", "2", "boom", row_prompt=CHAT, columns={"answer": "2"})
    results = score("verifiers_0:rubric", batch)
    assert scored(results) == [1.0, 1.5, "error"]
    assert results[1]["metrics"] == {"correct_answer": 1.0, "shortest": 1.0}
    assert "ValueError: cannot read it" in results[2]["error"]
