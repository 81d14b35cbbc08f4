"""The moving average of sharded weights."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

from holdfast_worker.trainer.moving_average import STATE_NAME
from torch_trainers import LENGTHS
from trainer_harness import OPTIMIZER, POLICY_LOSS, Artifacts, run_ranks, trajectory_batch

DECAY = 0.75


@pytest.mark.parametrize(("zero", "dtype"), [(0, "bfloat16"), (2, "float16"), (3, "bfloat16")])
def test_ranks_average_what_they_publish_and_another_number_of_ranks_continues(
    tmp_path, zero, dtype
):
    artifacts = Artifacts(tmp_path / "artifacts")
    model = str(tmp_path / "model")

    def load(version, checkpoint=None):
        args = {"version": version, "model_path": model, "checkpoint": checkpoint}
        return {"op": "load", "args": {**args, "optimizer": OPTIMIZER}}

    def train(k):
        batch = artifacts.put_json(trajectory_batch(artifacts, LENGTHS, seed=k))
        args = {"batch": batch, "loss": artifacts.put_json(POLICY_LOSS), "optimizer": OPTIMIZER}
        between = {"from": f"v{k}", "to": f"v{k + 1}"}
        return {"op": "train", "args": {**args, **between, "micro_batch_tokens_max": 64}}

    def publish(version, name, *, average=False):
        args = {"version": version, "dir": str(tmp_path / name), "average": average}
        return {"op": "publish", "args": args}

    create = {"op": "create_model", "args": {"recipe": "tiny_qwen", "seed": 1, "dir": model}}
    save = {"op": "save", "args": {"version": "v2", "dir": str(tmp_path / "checkpoint")}}
    script = [create, load("v0"), publish("v0", "v0"), train(0), publish("v1", "v1"), train(1)]
    script += [publish("v2", "v2"), publish("v2", "average", average=True), save]
    spec = {"zero": zero, "dtype": dtype, "ema_decay": DECAY}
    answers = run_ranks(tmp_path, script, artifacts=artifacts, ranks=2, **spec)

    def weights(name):
        return load_file(tmp_path / name / "model.safetensors")

    expected = {name: tensor.float() for name, tensor in weights("v0").items()}
    for version in ("v1", "v2"):
        new = weights(version)
        expected = {
            name: DECAY * old + (1 - DECAY) * new[name].float() for name, old in expected.items()
        }
    state = load_file(tmp_path / "checkpoint" / "state" / STATE_NAME)
    assert state.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(state[name], tensor, rtol=1e-6, atol=1e-7)
        assert torch.equal(weights("average")[name], state[name].to(getattr(torch, dtype))), name
    average = answers[0][-2]["digest"]
    assert average != answers[0][-3]["digest"]

    saved = [rank[-1] for rank in answers]
    assert sum(file["path"].startswith("ema/") for file in saved[1]["files"]) == 0
    checkpoint = {**saved[0], "files": [file for part in saved for file in part["files"]]}
    for ranks in (2, 1):
        script = [load("v2", checkpoint), publish("v2", f"again{ranks}", average=True)]
        again = run_ranks(tmp_path, script, artifacts=artifacts, ranks=ranks, **spec)
        assert again[0][-1]["digest"] == average, ranks
