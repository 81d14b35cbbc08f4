"""`verify` of NeMo Gym, through a real pool."""

from typing import Any

from styled_rewards import samples, scored


def test_nemo_gym_verifies_a_response_of_the_responses_api(score: Any) -> None:
    results = score("nemo_gym:verify", samples("2", "3", columns={"expected": "2"}))
    assert [(one["score"], one["metrics"]) for one in results] == [
        (1.0, {"right": 1.0, "style": 0.5}),
        (0.0, {"right": 0.0, "style": 0.5}),
    ]
    assert scored(score("nemo_gym:Server", samples("2", "3", columns={"expected": "3"}))) == [0, 1]
