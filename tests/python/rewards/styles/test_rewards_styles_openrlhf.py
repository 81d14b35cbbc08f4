"""OpenRLHF's functions, through a real pool."""

from typing import Any

from styled_rewards import samples, scored


def test_openrlhf_gets_whole_texts_and_its_tensors_are_read(score: Any) -> None:
    results = score("openrlhf:reward_func", samples("2", "33", answer="2"))
    assert scored(results) == [1.0, 0.0]
    assert [one["metrics"] for one in results] == [
        {"length": 1.0, "half": 0.5, "filter_score": 1.0},
        {"length": 2.0, "half": 0.5, "filter_score": 0.0},
    ]
