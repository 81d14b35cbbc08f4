"""What a loss reads: masked before any operation, whatever stands behind the mask."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from holdfast_worker.algorithm.inputs import (
    WIDTH,
    Inputs,
    Sums,
    kind_of,
    masked,
    row_sum,
    widened,
)
from holdfast_worker.algorithm.source import AlgorithmError

MASK = torch.tensor([[True, True, False], [False, False, False]])


def inputs(values: dict[str, Tensor], **how: bool) -> tuple[Inputs, list[str]]:
    """The inputs, and what was read of them, in order."""
    names: list[str] = []

    def read(name: str) -> Tensor:
        names.append(name)
        return values[name]

    return Inputs(MASK, read, dtype=torch.float64, **how), names


def test_every_input_is_zero_where_it_is_masked_in_the_dtype_of_the_loss() -> None:
    token = torch.tensor([[1.0, 2.0, math.nan], [math.inf, math.nan, -math.inf]])
    x, _ = inputs({"advantage": token, "length": torch.tensor([2.0, math.nan])})
    assert x.advantage.shape == (2, WIDTH) and x.advantage.dtype == torch.float64
    assert x.advantage[:, :3].tolist() == [[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    assert x.length.tolist() == [2.0, 0.0]


def test_masked_content_reaches_no_gradient() -> None:
    logp = torch.tensor([[1.0, 2.0, math.inf], [math.inf] * 3], requires_grad=True)
    x, _ = inputs({"logp": logp})
    x.per_sequence_mean(x.logp.exp()).sum().backward()
    e = math.e
    assert logp.grad is not None
    assert torch.allclose(logp.grad, torch.tensor([[e / 2, e**2 / 2, 0.0], [0.0] * 3]))


def test_an_input_is_read_once_and_only_if_it_is_asked_for() -> None:
    x, names = inputs({"logp": torch.zeros(2, 3), "coef.kl": torch.tensor(0.5)})
    assert names == []
    assert x.logp is x.logp
    assert x.coef.kl.item() == x.coef["kl"].item() == 0.5
    assert names == ["logp", "coef.kl"]


def test_old_logp_of_the_current_policy_is_its_logp_without_gradient() -> None:
    logp = torch.zeros(2, 3, requires_grad=True)
    x, names = inputs({"logp": logp}, old_is_current=True)
    assert torch.equal(x.old_logp, x.logp)
    assert (x.old_logp.requires_grad, x.logp.requires_grad) == (False, True)
    assert names == ["logp"]


def test_a_name_that_is_no_input_is_refused_with_the_nearest() -> None:
    x, _ = inputs({})
    with pytest.raises(AttributeError, match=r"no input 'advantages' \(did you mean advantage\?\)"):
        _ = x.advantages
    assert (kind_of("advantage"), kind_of("margin"), kind_of("coef.kl")) == (
        "token",
        "pair",
        "step",
    )


def test_sums_and_means_run_over_trained_tokens_and_an_empty_sequence_has_zero() -> None:
    x, _ = inputs({})
    values = widened(torch.tensor([[1.0, 2.0, 100.0], [5.0, 5.0, 5.0]]))
    assert x.per_sequence_sum(values).tolist() == [3.0, 0.0]
    assert x.per_sequence_mean(values).tolist() == [1.5, 0.0]
    assert x.per_token(torch.tensor([7.0, 8.0]))[:, :3].tolist() == [[7.0, 7.0, 0.0], [0.0] * 3]
    assert x.chosen(torch.tensor([1.0, 2.0])).tolist() == [1.0]
    assert x.rejected(torch.tensor([1.0, 2.0])).tolist() == [2.0]


def test_padding_changes_no_bit_of_a_sum() -> None:
    torch.manual_seed(0)
    rows = torch.randn(3, 61)
    whole = row_sum(rows)
    for extra in (3, 64, 67):
        assert torch.equal(row_sum(torch.nn.functional.pad(rows, (0, extra))), whole)
    assert [widened(rows[:, :n]).shape[1] for n in (0, 1, 61)] == [0, WIDTH, WIDTH]
    assert widened(torch.zeros(1, WIDTH)).shape == (1, WIDTH)


def test_masked_finds_the_kind_by_the_shape() -> None:
    x, _ = inputs({})
    kinds = [masked(x, torch.zeros(shape), "it")[0] for shape in [(2, WIDTH), (2,), (1,)]]
    assert kinds == ["token", "sequence", "pair"]
    for reduced in (torch.tensor(1.0), torch.zeros(2, 3), 1.0):
        with pytest.raises(AlgorithmError, match=r"Cannot reduce it because it is a .*unreduced"):
            masked(x, reduced, "it")


def test_sums_of_the_step_are_float64_and_an_unknown_one_is_named() -> None:
    s = Sums({"weight": 1 + 2.0**-40}, "cpu")
    assert s.weight.item() == s["weight"].item() == 1 + 2.0**-40
    with pytest.raises(
        AttributeError, match=r"no 'weigth' \(did you mean weight\?\): it returns we"
    ):
        _ = s.weigth
    with pytest.raises(AttributeError, match=r"no 'w': there is no statistics\(x, c\)"):
        _ = Sums({}, "cpu").w
