"""What is measured of every step: how far the policy is from the one that sampled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from holdfast_worker.loss import LossProgram
from holdfast_worker.wire.types import RatioBounds
from loss_expressions import likelihood
from loss_model import LENGTHS, WHOLE, Model
from simulated_ranks import in_ranks

PPO = RatioBounds(low=0.2, high=0.2, ratio="token")


def metrics(
    model: Model, cut: list[list[int]] = WHOLE, clip: RatioBounds | None = PPO, **options: Any
) -> dict[str, float]:
    return model.step(LossProgram(likelihood()), cut, clip=clip, **options).metrics


def model_of(*differences: list[float]) -> Model:
    """A model whose log-probabilities differ from the sampler's by these, sequence by sequence."""
    behaviour = [[-2.0 - i / 8 for i in range(len(row))] for row in differences]
    rows = [[b + v for b, v in zip(row, row_v)] for row, row_v in zip(behaviour, differences)]
    return Model(rows, {"behaviour_logp": behaviour})


def test_a_policy_that_is_the_sampler_s_has_no_mismatch() -> None:
    found = metrics(model_of([0.0, 0.0], [0.0]), [[0, 1]])
    assert found == {
        "policy/mismatch_abs": 0.0,
        "policy/mismatch_kl": 0.0,
        "policy/clip_ratio": 0.0,
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "clip",
    [
        PPO,
        RatioBounds(low=None, high=0.1, ratio="token"),
        RatioBounds(low=0.05, high=None, ratio="sequence"),
    ],
)
def test_the_means_are_those_of_their_definitions(seed: int, clip: RatioBounds) -> None:
    random = np.random.default_rng(seed)
    differences = [random.normal(scale=0.3, size=length).tolist() for length in LENGTHS]
    found = metrics(model_of(*differences), clip=clip)
    v = np.concatenate([np.array(row) for row in differences])
    per = [
        row if clip.ratio == "token" else [float(np.mean(row))] * len(row) for row in differences
    ]
    ratio = np.exp(np.concatenate([np.array(row) for row in per]))
    outside = np.zeros(len(v), bool)
    if clip.low is not None:
        outside |= ratio < 1 - clip.low
    if clip.high is not None:
        outside |= ratio > 1 + clip.high
    assert found["policy/mismatch_abs"] == pytest.approx(float(np.abs(v).mean()), rel=1e-5)
    assert found["policy/mismatch_kl"] == pytest.approx(float((np.exp(v) - 1 - v).mean()), rel=1e-4)
    assert found["policy/clip_ratio"] == pytest.approx(float(outside.mean()), abs=1e-12)
    assert 0 < found["policy/clip_ratio"] < 1


def test_it_is_the_same_for_every_cut_padding_and_world_size() -> None:
    whole = metrics(Model.random(behaviour_logp=0.4))
    assert len(whole) == 3
    for cut in ([[4], [3], [2], [1], [0]], [[2, 0], [-1, 1], [3, 4]]):
        assert metrics(Model.random(behaviour_logp=0.4), cut, padding=9) == whole
    ranks = [[[3], [-1]], [[1, 0], [4]], [[2], [-1, -1]]]
    found = in_ranks(
        3,
        lambda rank, gather: metrics(
            Model.random(behaviour_logp=0.4), ranks[rank], gather=gather, world_size=3
        ),
    )
    assert found == [whole] * 3


def test_it_costs_no_forward_and_changes_no_bit_of_loss_and_gradient() -> None:
    plain, watched = Model.random(behaviour_logp=0.4), Model.random(behaviour_logp=0.4)
    program = LossProgram(likelihood())
    first, second = plain.step(program, WHOLE), watched.step(program, WHOLE, clip=PPO)
    assert first.metrics == {} and len(second.metrics) == 3
    assert (first.loss, plain.calls, float(plain.weight.grad)) == (
        second.loss,
        watched.calls,
        float(watched.weight.grad),
    )


def test_a_mean_that_is_not_finite_is_left_out_and_the_step_stands() -> None:
    outcome = model_of([0.1, 800.0], [0.2]).step(LossProgram(likelihood()), [[0, 1]], clip=PPO)
    assert outcome.finite and math.isfinite(outcome.loss)
    assert set(outcome.metrics) == {"policy/mismatch_abs", "policy/clip_ratio"}
    assert outcome.metrics["policy/clip_ratio"] == pytest.approx(2 / 3)


def test_what_is_not_trained_counts_nowhere() -> None:
    model = model_of([0.1, 0.1], [0.5])
    model.forward = lambda mb, need, own=model.forward: {
        k: torch.nan_to_num(v, nan=7.0) for k, v in own(mb, need).items()
    }
    assert metrics(model, [[0, 1]], padding=5)["policy/mismatch_abs"] == pytest.approx(
        0.7 / 3, rel=1e-5
    )
