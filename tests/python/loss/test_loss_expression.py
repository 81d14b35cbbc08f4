"""What a recorded expression says about itself before anything is computed."""

from __future__ import annotations

import pytest

from holdfast_worker.loss.expression import LossExpression
from loss_expressions import Nodes, clipped, effective_sample_size


def test_inputs_are_split_by_who_brings_them() -> None:
    n = Nodes()
    total = n(
        "add",
        n("add", n.input("logp"), n.input("length")),
        n("mul", n.input("staleness"), n.input("coef.kl")),
    )
    program = LossExpression(n.expression(n("div", n("stepSum", total), n.input("n_groups"))))
    assert program.live == {"logp"}
    assert program.columns == {"staleness"}
    assert program.coef == {"coef.kl"}
    assert program.inputs == {"logp", "length", "staleness", "coef.kl", "n_groups"}


def test_statistics_are_the_sums_that_the_gradient_needs_whole() -> None:
    assert LossExpression(clipped()).statistics == []
    program = LossExpression(effective_sample_size())
    assert [program.describe(i) for i in program.statistics] == [
        "stepSum(exp(...))",
        "stepSum(square(...))",
    ]


def test_a_sum_that_only_a_metric_reads_is_no_statistic() -> None:
    n = Nodes()
    total = n("stepSum", n.input("logp"))
    program = LossExpression(
        n.expression(total, square=n("square", n("stepSum", n("exp", n.input("logp")))))
    )
    assert program.statistics == [] and not program.live_statistics


def test_expressions_that_no_micro_batch_could_share_are_refused() -> None:
    n = Nodes()
    with pytest.raises(ValueError, match=r"\(square\) is not linear in its sums"):
        LossExpression(n.expression(n("square", n("stepSum", n.input("logp")))))
    n = Nodes()
    with pytest.raises(ValueError, match="no gradient flows"):
        LossExpression(n.expression(n("stepSum", n("detach", n.input("logp")))))
    with pytest.raises(ValueError, match="of version 2: this worker reads 1"):
        LossExpression({**clipped(), "version": 2})
