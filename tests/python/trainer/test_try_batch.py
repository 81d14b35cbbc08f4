"""
A recorded batch that an algorithm is tried on: what it masks is its own choice, not that of the
run.
"""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file, save_file

import sampler_fixtures as fixtures
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.try_batch import Trial, report
from trainer_harness import POLICY_LOSS, Artifacts, trajectory_batch

LENGTHS = [[6, 9], [7, 5], [8, 8]]
REWARD = [1.0, 0.0, 0.5, 1.0, 0.0, 1.0]


def outcome_of(tmp_path, *, masked=(), recorded=(), **job):
    artifacts = Artifacts(tmp_path / "artifacts")
    batch = trajectory_batch(artifacts, LENGTHS, updates=[[0, 1], [2]], masked=list(recorded))
    cut = ["length" if place in masked else "stop" for place in range(6)]
    trial = Trial(
        {
            "artifacts_dir": str(artifacts.directory),
            "batch": artifacts.put_json(batch),
            "masked": list(masked),
            "round": {
                "reward": REWARD,
                "group": [0, 0, 1, 1, 2, 2],
                "stop": cut,
                "length": [3] * 6,
            },
            "draws": [0, 0, 1, 1, 2, 2],
            "assigned": {"advantage": REWARD},
            "losses": {"loss": POLICY_LOSS},
            **job,
        }
    )
    assigned = trial.assign()
    return report(trial, assigned, trial.losses())


def places(outcome):
    return [[row["sequence"] for row in one["rows"]] for one in outcome["losses"]]


def test_masked_sequences_are_in_no_row_and_no_denominator(tmp_path):
    outcome = outcome_of(tmp_path, masked=[1, 4], recorded=[0, 2])
    assert places(outcome) == [[0, 2, 3], [5]]
    # On the policy that sampled, each token's loss is -advantage: 3 + 4 + 2 tokens with 1, 0.5 and
    # 1, then 5 with 1.
    assert outcome["losses"][0]["loss"] == pytest.approx(-(3 * 1.0 + 4 * 0.5 + 2 * 1.0) / 9)
    assert outcome["losses"][1]["loss"] == pytest.approx(-1.0)
    assert outcome["notes"][-1] == "mask_truncated leaves 2 of them out of the loss"


def test_without_the_setting_the_batch_is_tried_whole(tmp_path):
    outcome = outcome_of(tmp_path, masked=[], recorded=[0, 2])
    assert places(outcome) == [[0, 1, 2, 3], [4, 5]]
    assert not any("mask_truncated" in note for note in outcome["notes"])


def test_a_step_of_which_nothing_is_left_is_not_tried(tmp_path):
    outcome = outcome_of(tmp_path, masked=[4, 5], recorded=[0])
    assert places(outcome) == [[0, 1, 2, 3]]
    assert "loss: 1 steps have nothing to train on" in outcome["notes"]
    assert outcome_of(tmp_path, masked=list(range(6)), recorded=[0])["losses"] == []


def test_a_model_is_opened_as_the_run_opens_it(tmp_path):
    model = fixtures.make_model(tmp_path / "model")
    file = model / fixtures.WEIGHTS_NAME
    tensors = {**load_file(file), "score.weight": torch.ones(1, 128)}
    save_file(tensors, file, metadata={"format": "pt"})
    refused = {"trust_remote_code": False, "open_with_missing": False}
    with pytest.raises(BadDataError, match="has no place for tensors"):
        outcome_of(tmp_path, model=str(model), opening={**refused, "open_with_unexpected": False})
    opening = {**refused, "open_with_unexpected": True}
    outcome = outcome_of(tmp_path, model=str(model), opening=opening)
    assert [one["loss"] for one in outcome["losses"]] != [0, 0]
