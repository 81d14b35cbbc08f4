"""
Two real DeepSpeed ranks with uneven micro-batches have the gradient of one torch rank with the
whole batch: float32, ZeRO 0 to 3, one loss for each way to make a number of a step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from loss_expressions import Nodes, effective_sample_size, likelihood
from test_trainer_pair_batches import preference_batch
from trainer_harness import (
    OPTIMIZER,
    Artifacts,
    Trainer,
    deepspeed_python,
    run_ranks,
    trajectory_batch,
)

# Adam's first step is lr * g / (|g| + eps): with such numbers the weights move by the gradient
# times 1e4, so far that their own rounding is small beside it.
GRADIENT = {
    **OPTIMIZER,
    "lr": 1e8,
    "eps": 1e4,
    "weight_decay": 0.0,
    "clip_grad_norm": 1e9,
    "schedule": {
        "name": "linear",
        "warmup_steps": 0,
        "stable_steps": 0,
        "total_steps": 20,
        "min_ratio": 1.0,
    },
}
LENGTHS = [[16, 9, 12, 7]] * 5
PAIRS = [
    ("sort 321 =", "123", "132", 0.0),
    ("sort 54 =", "45", "54", 0.25),
    ("sort 1 =", "1", "111111", 1.0),
]
TOKENS_MAX = {
    "trajectories": 100,
    "preference": 40,
}  # Odd numbers of micro-batches: one rank runs a filler.


def sequence_mean() -> dict[str, Any]:
    """PPO's objective against the sampler, averaged over tokens, then over sequences."""
    n = Nodes()
    ratio = n("exp", n("sub", n.input("logp"), n.input("behaviour_logp")))
    advantage = n.input("advantage")
    smaller = n(
        "minimum",
        n("mul", ratio, advantage),
        n("mul", n("clamp", ratio, lo=0.001, hi=1.2), advantage),
    )
    means = n("perSequenceMean", n("neg", smaller))
    return n.expression(n("div", n("stepSum", means), n.input("n_sequences")))


def sequence_ratio() -> dict[str, Any]:
    """GSPO: one ratio for a sequence, with a gradient through each token."""
    n = Nodes()
    logp = n.input("logp")
    whole = n("exp", n("perSequenceMean", n("sub", logp, n.input("behaviour_logp"))))
    ratio = n("mul", n("detach", whole), n("exp", n("sub", logp, n("detach", logp))))
    means = n("perSequenceMean", n("neg", n("mul", ratio, n.input("advantage"))))
    return n.expression(n("div", n("stepSum", means), n.input("n_sequences")))


def pair_mean() -> dict[str, Any]:
    n = Nodes()
    reward = n("mul", n("perSequenceSum", n.input("logp")), n.scalar(0.1))
    gap = n("sub", n("sub", n("chosen", reward), n("rejected", reward)), n.input("margin"))
    return n.expression(n("div", n("stepSum", n("neg", n("logSigmoid", gap))), n.input("n_pairs")))


LOSSES = {
    "token_mean": likelihood(),
    "sequence_mean": sequence_mean(),
    "sequence_ratio": sequence_ratio(),
    "statistic": effective_sample_size(),
    "pair_mean": pair_mean(),
}


def batch_of(name: str, artifacts: Artifacts) -> dict[str, Any]:
    return (
        preference_batch(PAIRS)
        if name == "pair_mean"
        else trajectory_batch(artifacts, LENGTHS, seed=3)
    )


def moved(before: Path, after: Path) -> np.ndarray:
    """How far every parameter moved."""
    start, end = (load_file(directory / "model.safetensors") for directory in (before, after))
    return np.concatenate(
        [(end[name].astype(np.float64) - start[name]).ravel() for name in sorted(start)]
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The model, and what one torch rank makes of each loss in one micro-batch."""
    trainer = Trainer(tmp_path_factory.mktemp("whole"))
    model, steps = Path(trainer.create()), {}
    for name, loss in LOSSES.items():
        trainer.load(**GRADIENT)
        batch = batch_of(name, trainer.artifacts)
        step = trainer.train(batch, between=("v0", "v1"), loss=loss, tokens_max=100_000)["steps"][0]
        assert step["micro_batches"] == 1
        out = trainer.directory / name
        trainer.call("publish", version="v1", dir=str(out))
        steps[name] = (step, moved(model, out))
    return model, steps


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_every_reduction_has_the_gradient_of_the_whole_batch_on_one_rank(tmp_path, whole, zero):
    deepspeed_python()
    model, expected = whole
    artifacts, script = Artifacts(tmp_path / "artifacts"), []
    for name, loss in LOSSES.items():
        batch = batch_of(name, artifacts)
        train = {
            "from": "v0",
            "to": "v1",
            "batch": artifacts.put_json(batch),
            "loss": artifacts.put_json(loss),
            "optimizer": GRADIENT,
            "micro_batch_tokens_max": TOKENS_MAX[batch["kind"]],
        }
        load = {
            "version": "v0",
            "model_path": str(model),
            "optimizer": GRADIENT,
            "checkpoint": None,
        }
        script += [{"op": "load", "args": load}, {"op": "train", "args": train}]
        script.append({"op": "publish", "args": {"version": "v1", "dir": str(tmp_path / name)}})
    answers = run_ranks(tmp_path, script, artifacts=artifacts, ranks=2, zero=zero)[0]
    for name, (step, move) in expected.items():
        answer = answers[2 + 3 * list(expected).index(name)]  # after the boot and its own load
        assert "steps" in answer, answer
        ours = answer["steps"][0]
        assert ours["micro_batches"] > 2
        assert ours["loss"] == pytest.approx(step["loss"], rel=1e-6)
        assert ours["grad_norm"] == pytest.approx(step["grad_norm"], rel=1e-6)
        difference = moved(model, tmp_path / name) - move
        assert np.linalg.norm(move) > 1
        assert np.linalg.norm(difference) <= 1e-6 * np.linalg.norm(move), name
