"""A recorded expression in a step: what it reads and costs, and what is named as not finite."""

from __future__ import annotations

import math

import pytest
import torch

from holdfast_worker.loss import LossProgram, StepOutcome, run_step
from loss_expressions import Nodes, clipped, effective_sample_size
from loss_model import WHOLE, Model


def test_a_live_statistic_costs_one_forward_without_gradient_per_micro_batch() -> None:
    model = Model.random(behaviour_logp=0.9)
    program = LossProgram(effective_sample_size())
    assert program.live_statistics
    model.step(program, [[0, 1], [2, 3, 4]])
    assert model.calls == [({"logp"}, False)] * 2 + [({"logp"}, True)] * 2


def test_a_column_that_holds_the_current_logp_saves_that_forward() -> None:
    model = Model.random(behaviour_logp=0.9, old_logp=0.0)
    program = LossProgram(effective_sample_size())
    saved = model.step(program, WHOLE, logp_current="old_logp")
    assert model.calls == [({"logp"}, True)]
    assert saved == Model.random(behaviour_logp=0.9).step(program, WHOLE)


def test_a_sum_that_is_not_live_needs_no_forward() -> None:
    n = Nodes()
    loss = n("div", n("stepSum", n.input("logp")), n("stepSum", n.input("advantage")))
    program = LossProgram(n.expression(loss))
    assert not program.live_statistics
    model = Model([[-1.0, -3.0]], {"advantage": [[1.0, 3.0]]})
    assert model.step(program, [[0]]).loss == -1.0
    assert model.calls == [({"logp"}, True)]


def test_what_the_loss_does_not_read_is_never_touched() -> None:
    class Guarded(dict):
        def __getitem__(self, name: str) -> torch.Tensor:
            assert name == "advantage"
            return super().__getitem__(name)

    n = Nodes()
    program = LossProgram(
        n.expression(n("stepSum", n("mul", n.input("logp"), n.input("advantage"))))
    )
    model = Model([[-1.0, -3.0]], {"advantage": [[1.0, 3.0]], "ref_logp": [[0.0, 0.0]]})
    batch = model.micro_batch([0])
    batch.columns = Guarded(batch.columns)
    outcome = run_step(
        program,
        [batch],
        counts=model.counts(),
        forward=model.forward,
        backward=model.backward,
        gather=lambda value: [value],
        world_size=1,
    )
    assert outcome.loss == -10.0


def test_one_number_per_sequence_serves_as_a_token_column() -> None:
    n = Nodes()
    program = LossProgram(
        n.expression(n("stepSum", n("mul", n.input("logp"), n.input("advantage"))))
    )
    model = Model([[-1.0, -3.0], [-1.0]])
    batch = model.micro_batch([0, 1])
    batch.columns = {"advantage": torch.tensor([2.0, 3.0])}
    model.micro_batch = lambda *_: batch  # type: ignore[method-assign]
    assert model.step(program, [[0, 1]]).loss == -11.0


def test_old_logp_is_the_detached_logp_where_the_batch_serves_one_step() -> None:
    program = LossProgram(clipped(), old_is_current=True)
    assert program.inputs == {"logp", "advantage"} and program.columns == {"advantage"}
    model = Model([[-1.0, -2.0]], {"advantage": [[3.0, -1.0]]})
    assert model.step(program, [[0]]).loss == -2.0
    assert model.weight.grad == -2.0


def test_a_loss_that_is_not_finite_names_the_first_node_sequence_and_token() -> None:
    program = LossProgram(clipped())
    columns = {"old_logp": [[-1.0, -1.0], [-1.0, -1.0]], "advantage": [[1.0, 1.0], [1.0, -1.0]]}
    model = Model([[-1.0, -1.0], [-1.0, 99.0]], columns)
    outcome = model.step(program, [[0], [1]])
    assert not outcome.finite and math.isnan(outcome.loss)
    assert outcome.culprit is not None
    assert outcome.culprit.text == "exp(sub(...))"
    assert (outcome.culprit.sequence, outcome.culprit.token) == (1, 1)
    assert [boundary for _, boundary in model.losses] == [
        False,
        True,
    ]  # Every backward ran: no rank waits for another.


def test_a_statistic_that_is_not_finite_is_named_where_it_begins() -> None:
    model = Model([[-1.0, -2.0], [-1.0]], {"behaviour_logp": [[-1.0, -1e4], [-1.0]]})
    outcome = model.step(LossProgram(effective_sample_size()), [[1], [0]])
    assert outcome.culprit is not None
    assert (outcome.culprit.text, outcome.culprit.sequence, outcome.culprit.token) == (
        "exp(sub(...))",
        0,
        1,
    )


def test_a_metric_that_is_not_finite_is_left_out() -> None:
    n = Nodes()
    total = n("stepSum", n.input("logp"))
    zero = n("stepSum", n.input("advantage"))
    program = LossProgram(n.expression(total, nothing=n("div", zero, zero), total=total))
    outcome = Model([[-1.0]], {"advantage": [[0.0]]}).step(program, [[0]])
    assert outcome == StepOutcome(-1.0, {"total": -1.0}, True, None)


def test_a_missing_column_or_coefficient_is_named_with_what_there_is() -> None:
    model = Model([[-1.0]], {"advantage": [[1.0]]})
    with pytest.raises(KeyError, match=r"reads 'old_logp': current columns are \['advantage'\]"):
        model.step(LossProgram(clipped()), [[0]])
    n = Nodes()
    program = LossProgram(n.expression(n("mul", n("stepSum", n.input("logp")), n.input("coef.kl"))))
    with pytest.raises(
        KeyError, match=r"reads 'coef.kl': current coefficients are \['coef.beta'\]"
    ):
        model.step(program, [[0]], coef={"beta": 1.0})
    assert model.step(program, [[0]], coef={"kl": 3.0}).loss == -3.0
