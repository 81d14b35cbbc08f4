"""slime's functions, of a sample and of a group, through a real pool."""

from typing import Any

from styled_rewards import samples, scored


def test_slime_gets_samples_and_its_args_say_that_they_are_not_there(score: Any) -> None:
    results = score("slime:custom_rm", samples("2", "3", answer="2"))
    assert [(one["score"], one["metrics"]["right"]) for one in results] == [(1.0, 1.0), (0.0, 0.0)]
    assert scored(score("slime:custom_rm", samples("2", answer="2", stop="length"))) == [-1.0]
    assert scored(score("slime:batched_custom_rm", samples("2", "3333"))) == [0.25, 1.0]
    (result,) = score("slime:by_args", samples("2"))
    assert "Cannot read args.reward_key" in result["error"]
