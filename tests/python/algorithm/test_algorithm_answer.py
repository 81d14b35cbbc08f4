"""What a loss may return, and what each sequence adds to its sums."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from holdfast_worker.algorithm.answer import Term, read_answer, same_number, statistics_of
from holdfast_worker.algorithm.inputs import Inputs
from holdfast_worker.algorithm.source import AlgorithmError

MASK = torch.tensor([[True, True], [True, False], [False, True], [False, False]])


def inputs() -> Inputs:
    def read(name: str) -> torch.Tensor:
        raise AssertionError(f"nothing asks for {name}")

    return Inputs(MASK, read, dtype=torch.float32)


def tokens(x: Inputs, value: float = 1.0) -> torch.Tensor:
    return torch.full_like(x.mask, value, dtype=torch.float32)


def refusal(returned: Any) -> str:
    x = inputs()
    with pytest.raises(AlgorithmError) as error:
        read_answer(x, returned(x) if callable(returned) else returned, "loss() of my.py")
    return str(error.value)


def test_a_loss_is_one_term_or_a_list_of_terms_and_metrics_are_terms_or_numbers() -> None:
    x = inputs()
    one = ("token_mean", tokens(x))
    answer = read_answer(
        x,
        {
            "loss": [one, ("sum", torch.ones(4))],
            "metrics": {"ratio": one, "step": 2, "scalar": torch.tensor(0.5)},
        },
        "loss()",
    )
    assert [(term.reduction, term.kind) for term in answer.terms] == [
        ("token_mean", "token"),
        ("sum", "sequence"),
    ]
    assert isinstance(answer.metrics["ratio"], Term)
    assert (answer.metrics["step"], answer.metrics["scalar"]) == (2.0, 0.5)
    assert len(read_answer(x, {"loss": one}, "loss()").terms) == 1


def test_what_is_no_loss_is_named_with_what_to_return() -> None:
    assert "because it is a scalar without 'loss': return" in refusal(torch.tensor(1.0))
    assert "because it is a Tensor without 'loss'" in refusal(torch.ones(4))
    assert "because it is a dict without 'loss'" in refusal({"metrics": {}})
    assert "it has 'metric' (did you mean metrics?)" in refusal({"loss": 1, "metric": {}})


def test_a_term_has_a_reduction_and_a_tensor_of_a_known_shape() -> None:
    assert "because it has no reduction" in refusal({"loss": torch.ones(4)})
    assert "no reduction 'token_men' (did you mean token_mean?)" in refusal(
        lambda x: {"loss": ("token_men", tokens(x))}
    )
    assert "because it is a tensor of shape [3]" in refusal({"loss": ("sum", torch.ones(3))})
    assert "because it is a float" in refusal({"loss": ("sum", 1.0)})
    assert "over pairs because it is a sequence value" in refusal(
        {"loss": ("pair_mean", torch.ones(4))}
    )
    assert "the metric 'm' that loss() of my.py returned because it is neither" in refusal(
        {"loss": ("sum", torch.ones(4)), "metrics": {"m": "text"}}
    )


def test_masked_values_count_in_no_sum_whatever_they_are() -> None:
    x = inputs()
    poisoned = torch.where(x.mask, tokens(x, 3.0), math.nan)
    (term,) = read_answer(x, {"loss": ("token_mean", poisoned)}, "loss()").terms
    assert term.share().item() == 12.0
    assert term.parts([0, 1, 2, 3]) == {0: 6.0, 1: 3.0, 2: 3.0, 3: 0.0}


def test_parts_stand_at_their_places_and_fillers_add_nothing() -> None:
    x = inputs()
    (term,) = read_answer(x, {"loss": ("sum", torch.arange(4.0))}, "loss()").terms
    assert term.parts([7, 2, -1, -1]) == {7: 0.0, 2: 1.0}


def test_a_pair_counts_if_both_of_its_sequences_are_trained() -> None:
    x = inputs()
    margins = x.chosen(torch.ones(4)) - x.rejected(torch.zeros(4))
    (term,) = read_answer(x, {"loss": ("pair_mean", margins)}, "loss()").terms
    assert (term.kind, term.share().item()) == ("pair", 1.0)
    assert term.parts([4, 5, 6, 7]) == {4: 1.0, 6: 0.0}


def test_parts_are_summed_in_float64() -> None:
    x = inputs()
    value = tokens(x)
    value[0, 1] = 2.0**-40  # Lost beside 1 in float32.
    (term,) = read_answer(x, {"loss": ("sum", value)}, "loss()").terms
    assert term.parts([0, 1, 2, 3])[0] == 1 + 2.0**-40


def test_statistics_are_sums_by_name() -> None:
    x = inputs()
    sums = statistics_of(x, {"w": tokens(x)}, "statistics()")
    assert (sums["w"].reduction, sums["w"].share().item()) == ("sum", 4.0)
    with pytest.raises(AlgorithmError, match=r'it is a Tensor: return \{"w": tensor\}'):
        statistics_of(x, tokens(x), "statistics()")


def test_same_number_takes_nan_for_itself() -> None:
    assert same_number(math.nan, math.nan) and same_number(0.0, -0.0)
    assert not same_number(math.nan, 0.0) and not same_number(1.0, 1.0 + 2**-52)
