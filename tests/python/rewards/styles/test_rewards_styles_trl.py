"""TRL's functions, of a whole group, through a real pool."""

from typing import Any

from styled_rewards import CHAT, samples, scored


def test_trl_gets_lists_and_columns_and_none_does_not_apply(score: Any) -> None:
    texts = r"\boxed{2}", r"\boxed{3}"
    results = score("trl:boxed", samples(*texts, columns={"ground_truth": "2"}))
    assert scored(results) == [1.0, 0.0]
    assert scored(score("trl:boxed", samples("a", "b", columns={"ground_truth": "skip"}))) == [
        "none",
        "none",
    ]
    results = score("trl:conversational", samples("yes", "no", row_prompt=CHAT))
    assert scored(results) == [1.0, 0.0]
    assert [one["metrics"] for one in results] == [{"mean_tokens": 2.5}] * 2
    (result,) = score("trl:by_state", samples("yes"))
    assert result["outcome"] == "error"
    assert "Cannot read trainer_state.global_step" in result["error"]
