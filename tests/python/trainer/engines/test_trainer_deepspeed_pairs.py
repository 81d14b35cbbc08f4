"""Learning from pairs on two DeepSpeed ranks."""

from __future__ import annotations

import pytest

from test_trainer_pairs import LOSSES, PAIRS, make, ready
from trainer_harness import deepspeed_python, run_ranks


@pytest.mark.parametrize("name", LOSSES)
def test_two_ranks_train_pairs_as_one_does_with_uneven_shares_and_a_filler(tmp_path, name):
    deepspeed_python()
    trainer = make(tmp_path, name)
    batch = ready(trainer, name)
    alone = trainer.train(batch, between=("v0", "v1"), loss=LOSSES[name][0], tokens_max=1)["steps"][
        0
    ]
    refs = {
        "batch": trainer.artifacts.put_json(batch),
        "loss": trainer.artifacts.put_json(LOSSES[name][0]),
    }
    load = {
        "version": "v0",
        "model_path": str(tmp_path / "model"),
        "optimizer": trainer.optimizer,
        "checkpoint": None,
    }
    train = {
        "from": "v0",
        "to": "v1",
        **refs,
        "optimizer": trainer.optimizer,
        "micro_batch_tokens_max": 1,
    }
    request = {"version": "v0", **refs, "micro_batch_tokens_max": 1}
    script = [
        {"op": "load", "args": load},
        {"op": "evaluate", "args": request},
        {"op": "train", "args": train},
    ]
    spec = {"artifacts": trainer.artifacts, "ranks": 2, "zero": 2, "head": LOSSES[name][1]}
    (_, _, *first), (_, _, *second) = run_ranks(tmp_path, script, **spec)
    assert first == second
    evaluation, step = first[0], first[1]["steps"][0]
    assert step["micro_batches"] == len(PAIRS)
    assert evaluation["loss"] == step["loss"] == pytest.approx(alone["loss"], rel=1e-5)
    assert step["grad_norm"] == pytest.approx(alone["grad_norm"], rel=1e-4)
