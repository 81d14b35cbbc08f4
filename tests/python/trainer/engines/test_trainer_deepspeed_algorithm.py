"""An algorithm in Python on two DeepSpeed ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from algorithm_files import P3O
from holdfast_worker.loss.mismatch import NAMES as MISMATCH
from test_trainer_algorithm import FAR, LENGTHS, python, same, steps
from trainer_harness import (
    OPTIMIZER,
    Artifacts,
    Trainer,
    deepspeed_python,
    run_ranks,
    trajectory_batch,
)


def test_two_ranks_take_the_steps_of_one(tmp_path: Path) -> None:
    deepspeed_python()
    artifacts = Artifacts(tmp_path / "artifacts")
    model, loss = str(tmp_path / "model"), artifacts.put_json(python(P3O, **FAR))
    clip = {"low": 0.2, "high": None, "ratio": "sequence_mean"}
    load = {"version": "v0", "model_path": model, "optimizer": OPTIMIZER, "checkpoint": None}
    script = [
        {"op": "create_model", "args": {"recipe": "tiny_qwen", "seed": 1, "dir": model}},
        {"op": "load", "args": load},
    ]
    for k in range(2):
        batch = artifacts.put_json(trajectory_batch(artifacts, LENGTHS, seed=k))
        named = {
            "from": f"v{k}",
            "to": f"v{k + 1}",
            "batch": batch,
            "loss": loss,
            "optimizer": OPTIMIZER,
        }
        script.append(
            {"op": "train", "args": {**named, "micro_batch_tokens_max": 100, "mismatch": clip}}
        )
    answers = run_ranks(tmp_path, script, artifacts=artifacts, ranks=2, zero=2)
    assert answers[0][3:] == answers[1][3:]
    alone = Trainer(tmp_path / "alone")
    alone.create()
    expected = steps(alone, 2, loss=python(P3O, **FAR), tokens_max=100, mismatch=clip)
    taken = [answer["steps"][0] for answer in answers[0][3:]]
    same(taken, expected)
    assert {*MISMATCH} < {*expected[0]["metrics"]}
    for ours, one in zip(taken, expected, strict=True):
        assert ours["metrics"] == pytest.approx(one["metrics"], rel=1e-4)
