"""verl's functions, of a sample and of a batch, through a real pool."""

from typing import Any

from styled_rewards import samples, scored


def test_verl_gets_the_truth_of_its_own_column_and_its_extras_are_metrics(score: Any) -> None:
    columns = {
        "data_source": "gsm8k",
        "reward_model": {"style": "rule", "ground_truth": "2"},
        "extra_info": {"split": "train"},
    }
    results = score("verl:compute_score", samples("it is 2", "3", answer="9", columns=columns))
    assert scored(results) == [1.0, 0.0]
    assert results[0]["metrics"] == {"acc": 1.0, "right": 1.0, "split": 1.0}
    assert scored(score("verl:plain", samples("2", "3", columns=columns))) == [1.0, 0.0]
    assert scored(score("verl:batched", samples("2", "3", answer="3"))) == [0.0, 1.0]
    (result,) = score("verl:plain", samples("2", answer="2"))
    assert (result["outcome"], "no reward for ''" in result["error"]) == ("error", True)
