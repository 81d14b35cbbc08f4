"""The gradient of an expression on one micro-batch, as torch has it."""

from __future__ import annotations

import math

import pytest
import torch

from holdfast_worker.loss import LossProgram
from loss_expressions import Nodes, clipped
from loss_model import Model


@pytest.mark.parametrize(
    ("ratio", "advantage", "slope"),
    [(1.2, 1.0, -1.2), (0.8, -1.0, 0.8), (1.2, -1.0, 1.2), (0.8, 1.0, -0.8)],
)
def test_exactly_at_a_clip_edge_the_gradient_passes_as_in_torch(
    ratio: float, advantage: float, slope: float
) -> None:
    logp = math.log(ratio)
    bound = math.exp(logp)  # The edge itself, to the last bit.
    model = Model([[logp]], {"old_logp": [[0.0]], "advantage": [[advantage]]})
    model.rows = [row.double() for row in model.rows]
    model.rows[0][0] = logp
    model.weight = torch.zeros((), dtype=torch.float64, requires_grad=True)
    model.forward = lambda mb, need: {"logp": model.rows[0].unsqueeze(0) + model.weight}  # type: ignore[method-assign]
    edges = {"low": bound, "high": 2.0} if ratio < 1 else {"low": 0.5, "high": bound}
    model.step(LossProgram(clipped(**edges)), [[0]])
    assert model.weight.grad == pytest.approx(slope, rel=1e-15)


def test_a_tie_of_minimum_splits_the_gradient() -> None:
    n = Nodes()
    program = LossProgram(n.expression(n("stepSum", n("minimum", n.input("logp"), n.scalar(-1.0)))))
    model = Model([[-1.0]])
    model.step(program, [[0]])
    assert model.weight.grad == 0.5


def test_a_sequence_value_keeps_its_gradient_when_masked_tokens_are_not_finite() -> None:
    n = Nodes()
    whole = n("perSequenceSum", n.input("logp"))
    program = LossProgram(n.expression(n("stepSum", n("div", whole, n.input("advantage")))))
    model = Model([[-1.0, -2.0]], {"advantage": [[1.0, 4.0]]})
    model.step(program, [[0]], padding=3)  # 0 / 0 at every padded token
    assert model.weight.grad == 2 * (1 + 0.25)
