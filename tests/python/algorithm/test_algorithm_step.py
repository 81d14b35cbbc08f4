"""The step that a file makes."""

from __future__ import annotations

import math

import pytest

from algorithm_files import P3O, loss_of, program
from holdfast_worker.loss import LossProgram
from loss_expressions import effective_sample_size
from loss_model import WHOLE, Model


def p3o_model() -> Model:
    model = Model.random(behaviour_logp=0.9)
    model.columns["advantage"] = [[0.5 - place] * len(row) for place, row in enumerate(model.rows)]
    return model


def test_p3o_equals_the_step_of_every_other_cut_and_its_statistic_costs_one_forward_each() -> None:
    first = p3o_model()
    outcome = first.step(program(P3O), WHOLE)
    assert outcome.finite and 0 < outcome.metrics["policy/ess"] < 1
    for cut in ([[4], [3], [2], [1], [0]], [[2, 0], [-1, 1], [3, 4]]):
        other = p3o_model()
        found = other.step(program(P3O), cut, padding=9)
        assert found == outcome
        assert float(other.weight.grad) == pytest.approx(float(first.weight.grad), rel=1e-5)
        assert other.calls == [({"logp"}, False)] * len(cut) + [({"logp"}, True)] * len(cut)


def test_no_padding_changes_a_bit_of_an_operation_that_torch_computes_by_place() -> None:
    source = loss_of(
        "{'loss': ('sequence_mean', x.per_sequence_mean((x.logp * 1.7).sigmoid() ** 1.3))}"
    )
    first = Model.random().step(program(source), WHOLE)
    for cut in ([[4], [3], [2], [1], [0]], [[2, 0], [-1, 1], [3, 4]]):
        assert Model.random().step(program(source), cut, padding=9) == first


def test_the_effective_sample_size_equals_that_of_the_expression() -> None:
    expected = Model.random(behaviour_logp=0.9).step(LossProgram(effective_sample_size()), WHOLE)
    assert p3o_model().step(program(P3O), WHOLE).metrics["policy/ess"] == pytest.approx(
        expected.metrics["policy/ess"], rel=1e-12
    )


def test_a_column_that_holds_the_current_logp_saves_the_forward_of_the_statistic() -> None:
    model = p3o_model()
    model.columns["old_logp"] = [row.tolist() for row in model.rows]
    saved = model.step(program(P3O), WHOLE, logp_current="old_logp")
    assert model.calls == [({"logp"}, True)]
    assert saved == p3o_model().step(program(P3O), WHOLE)


def test_old_logp_is_the_detached_logp_where_the_batch_serves_one_step() -> None:
    source = loss_of("{'loss': ('token_mean', -(x.logp - x.old_logp).exp() * x.advantage)}")
    opened = program(source, old_is_current=True)
    assert opened.inputs == {"logp", "advantage"} and opened.columns == {"advantage"}
    model = Model([[-1.0, -2.0]], {"advantage": [[3.0, -1.0]]})
    assert model.step(opened, [[0]]).loss == -1.0
    assert model.weight.grad == -1.0


def test_a_loss_that_is_not_finite_names_line_sequence_and_token() -> None:
    source = "def loss(x, c):\n    ratio = (x.logp - x.old_logp).exp()\n    return {'loss': ('token_mean', ratio)}\n"
    model = Model([[-1.0, -1.0], [-1.0, 99.0]], {"old_logp": [[-1.0, -1.0], [-1.0, -1.0]]})
    outcome = model.step(program(source), [[0], [1]])
    assert not outcome.finite and outcome.culprit is not None
    assert outcome.culprit.text == "my.py:2 exp, at `ratio = (x.logp - x.old_logp).exp()`"
    assert (outcome.culprit.sequence, outcome.culprit.token) == (1, 1)


def test_what_is_masked_reaches_no_gradient() -> None:
    source = loss_of(
        "{'loss': ('sequence_mean', x.per_sequence_mean(x.logp / x.old_logp) * x.length)}"
    )
    model = Model([[-1.0, -2.0], [-1.0]], {"old_logp": [[-1.0, -4.0], [-2.0]]})
    outcome = model.step(program(source), [[0, 1]], padding=3)  # 0 / 0 at every padded token.
    assert outcome.loss == (1.5 + 0.5) / 2
    assert model.weight.grad is not None and math.isclose(
        float(model.weight.grad), (-1.25 - 0.5) / 2
    )
