"""Whole-step values over ragged data: the same bits however a step is cut."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from holdfast_worker.loss.expression import LossExpression
from holdfast_worker.loss.ragged import ELEMENTWISE, RaggedStep, StepValues, ragged
from loss_expressions import Nodes

MASKS = [(4, [0, 1, 1]), (2, [1, 0, 0]), (-1, [1, 1, 1]), (9, [0, 0, 0])]


def step(**inputs: Any) -> RaggedStep:
    data = ragged((place, np.array(mask)) for place, mask in MASKS)
    data.inputs = {name: np.array(values, np.float64) for name, values in inputs.items()}
    return data


def alone(value: Any) -> list[Any]:
    return [value]


def test_ragged_leaves_out_fillers_and_masked_tokens_and_keeps_the_rest_in_order() -> None:
    data = step()
    assert (data.places, data.lengths.tolist()) == ([4, 2, 9], [2, 1, 0])
    assert data.positions.tolist() == [1, 2, 0]
    assert data.owner.tolist() == [0, 0, 1]
    assert data.spans == [(0, 2), (2, 3), (3, 3)]
    assert ragged([]).positions.tolist() == []


def test_parts_of_tokens_sequences_and_pairs_and_an_empty_sequence_adds_nothing() -> None:
    data = step()
    assert data.parts("token", np.array([1.0, 2.0, 4.0])) == {4: 3.0, 2: 4.0, 9: 0.0}
    assert data.parts("sequence", np.array([1.0, 2.0, math.nan])) == {4: 1.0, 2: 2.0, 9: 0.0}
    pairs = ragged((place, np.array([full])) for place, full in enumerate([1, 1, 1, 0]))
    assert pairs.parts("pair", np.array([5.0, 7.0])) == {0: 5.0, 1: 0.0, 2: 0.0, 3: 0.0}


def test_a_sum_over_the_step_is_the_same_bits_on_any_number_of_ranks() -> None:
    n = Nodes()
    loss = n("stepSum", n.input("logp"))
    program = LossExpression(n.expression(loss))
    generator = np.random.default_rng(0)
    rows = [generator.standard_normal(7) * 10.0 ** (place % 5) for place in range(8)]

    def of(places: list[int]) -> RaggedStep:
        data = ragged((place, np.ones(7)) for place in places)
        data.inputs = {"logp": np.concatenate([rows[place] for place in places])}
        return data

    def summed(ranks: list[list[int]]) -> float:
        parts = [{loss: of(places).parts("token", of(places).inputs["logp"])} for places in ranks]
        values = StepValues(program, of(ranks[0]), lambda _: parts)
        values.resolve([loss])
        return values.value(loss)

    whole = summed([[0, 1, 2, 3, 4, 5, 6, 7]])
    assert summed([[7, 0], [3, 2, 1], [6, 5, 4]]) == whole
    assert whole == pytest.approx(sum(row.sum() for row in rows))


def test_sums_that_need_other_sums_are_gathered_after_them() -> None:
    n = Nodes()
    total = n("stepSum", n.input("advantage"))
    share = n("div", n.input("advantage"), total)
    loss = n("stepSum", n("mul", n.input("logp"), share))
    program = LossExpression(n.expression(loss))
    gathered: list[list[int]] = []

    def gather(mine: dict[int, Any]) -> list[Any]:
        gathered.append(list(mine))
        return [mine]

    values = StepValues(program, step(advantage=[1, 1, 2], logp=[1, 2, 3]), gather)
    values.resolve([loss])
    assert gathered == [[total], [loss]]
    assert (values.value(total), values.value(loss)) == (4.0, 2.25)


def test_the_first_value_that_is_not_finite_is_named_by_its_place_and_position() -> None:
    n = Nodes()
    ratio = n("log", n.input("logp"))
    program = LossExpression(n.expression(n("stepSum", ratio)))
    values = StepValues(program, step(logp=[1.0, 0.0, -1.0]), alone)
    values.value(ratio)
    assert values.first_not_finite() == (ratio, 4, 2)
    fine = StepValues(program, step(logp=[1.0, 1.0, 1.0]), alone)
    fine.value(ratio)
    assert fine.first_not_finite() is None


@pytest.mark.parametrize("x", [-1000.0, -1.0, 0.0, 1.0, 1000.0])
def test_sigmoid_and_its_logarithm_overflow_nowhere(x: float) -> None:
    with np.errstate(over="raise", invalid="raise"):
        log = float(ELEMENTWISE["logSigmoid"](x))
    assert log == pytest.approx(min(x, 0.0) - math.log1p(math.exp(-abs(x))), rel=1e-15)
    with np.errstate(under="ignore"):
        assert float(ELEMENTWISE["sigmoid"](x)) == math.exp(log)


def test_where_ignores_the_side_that_is_not_taken() -> None:
    condition, nan = np.array([1.0, 0.0]), np.full(2, math.nan)
    assert ELEMENTWISE["where"](condition, np.ones(2), nan)[0] == 1.0
    assert ELEMENTWISE["where"](condition, nan, np.ones(2))[1] == 1.0
    assert ELEMENTWISE["lt"](np.array([1.0, 2.0]), 2.0).tolist() == [1.0, 0.0]
    assert ELEMENTWISE["le"](np.array([2.0, 3.0]), 2.0).tolist() == [1.0, 0.0]
