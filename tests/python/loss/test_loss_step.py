"""One optimizer step: what is computed when, on which data, and what stops it."""

from __future__ import annotations

import math
from typing import Any

import torch

from holdfast_worker.loss import Culprit, LossProgram, StepOutcome, steepest
from loss_expressions import Nodes, effective_sample_size, likelihood
from loss_model import WHOLE, Model
from simulated_ranks import in_ranks


def test_backward_gets_each_share_times_the_world_size_and_the_boundary_on_the_last() -> None:
    model = Model([[-1.0, -2.0], [-3.0]])
    outcome = model.step(LossProgram(likelihood()), [[0], [1], [-1]], world_size=4)
    assert model.losses == [(4.0, False), (4.0, False), (0.0, True)]
    assert outcome == StepOutcome(2.0, {}, True, None)
    assert model.calls == [({"logp"}, True)] * 3


def test_loss_and_metrics_are_the_same_bits_for_every_cut_padding_and_world_size() -> None:
    program = LossProgram(effective_sample_size())
    first = Model.random(behaviour_logp=0.9).step(program, WHOLE)
    assert first.finite and 0 < first.metrics["policy/ess"] < 1
    for cut in ([[4], [3], [2], [1], [0]], [[2, 0], [-1, 1], [3, 4]]):
        assert Model.random(behaviour_logp=0.9).step(program, cut, padding=9) == first
    ranks = [[[3], [-1]], [[1, 0], [4]], [[2], [-1, -1]]]
    outcomes = in_ranks(
        3,
        lambda rank, gather: Model.random(behaviour_logp=0.9).step(
            program, ranks[rank], gather=gather, world_size=3
        ),
    )
    assert outcomes == [first] * 3


def test_a_loss_that_is_not_finite_poisons_the_last_gradient_on_every_rank_whatever_is_masked() -> (
    None
):
    n = Nodes()
    program = LossProgram(
        n.expression(n("stepSum", n("mul", n.input("logp"), n.input("advantage"))))
    )
    models = [
        Model([[-1.0, -2.0], [-3.0]], {"advantage": [[1.0, 1.0], [math.inf]]}) for _ in range(2)
    ]
    for model in models:  # The fillers' values are the model's too: masked, yet numbers.
        model.forward = lambda mb, need, own=model: {
            "logp": -torch.ones(mb.mask.shape) * (1 + own.weight)
        }
    ranks = [[[0], [-1]], [[1], [-1]]]
    outcomes = in_ranks(
        2, lambda rank, gather: models[rank].step(program, ranks[rank], gather=gather, world_size=2)
    )
    assert [outcome.finite for outcome in outcomes] == [False, False]
    assert [outcome.culprit.sequence for outcome in outcomes] == [1, 1]
    assert all(math.isnan(model.weight.grad) for model in models)


def test_steepest_names_the_live_value_with_the_largest_gradient_over_all_ranks() -> None:
    n = Nodes()
    program = LossProgram(
        n.expression(n("stepSum", n("mul", n.input("logp"), n.input("advantage"))))
    )
    advantage = {"advantage": [[1.0, 2.0], [3.0, -9.0, 4.0]]}
    models = [Model([[-1.0, -2.0], [-3.0, -1.0, -1.0]], advantage) for _ in range(2)]

    def steepest_of(rank: int, gather: Any) -> Culprit | None:
        outcome = models[rank].step(program, [[[0]], [[1]]][rank], gather=gather, world_size=2)
        return steepest(outcome, gather)

    assert in_ranks(2, steepest_of) == [Culprit(-1, "logp", 1, 1)] * 2


def test_every_rank_learns_of_a_loss_that_is_not_finite() -> None:
    rows = [[-1.0], [math.nan], [-1.0]]
    outcomes = in_ranks(
        3,
        lambda rank, gather: Model(rows).step(
            LossProgram(likelihood()), [[rank]], gather=gather, world_size=3
        ),
    )
    assert [outcome.finite for outcome in outcomes] == [False] * 3
    assert {
        (o.culprit.text, o.culprit.sequence, o.culprit.token) for o in outcomes if o.culprit
    } == {("logp", 1, 0)}
