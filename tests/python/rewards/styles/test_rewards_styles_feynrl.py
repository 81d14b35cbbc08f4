"""FeynRL's functions, alone and with a batch, through a real pool."""

from typing import Any

import pytest

from styled_rewards import samples, scored


@pytest.mark.parametrize("name", ["compute_score", "with_batch"])
def test_feynrl_returns_a_tensor_of_tokens_and_its_threshold_says_right(
    score: Any, name: str
) -> None:
    results = score(f"feynrl:{name}", samples("two", "three", answer="two"))
    assert [(one["score"], one["metrics"]) for one in results] == [
        (1.0, {"right": 1.0}),
        (0.0, {"right": 0.0}),
    ]
    assert scored(score(f"feynrl:{name}", samples("two", answer="two", stop="length"))) == [0.0]


def test_feynrl_rewards_of_tokens_stay_those_of_tokens(score: Any) -> None:
    (result,) = score("feynrl:per_token", samples("two"))
    assert result["outcome"] == "ok"
    assert result["score"] == sum(result["token_scores"])
    assert len(result["token_scores"]) == len(samples("two")[0]["token_ids"])
    (whole,) = score("feynrl:compute_score", samples("two", answer="two"))
    assert "token_scores" not in whole
