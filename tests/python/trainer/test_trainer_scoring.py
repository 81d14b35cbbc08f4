"""Columns that a model computes, by its head."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.scoring import COLUMNS, FORWARDS, passes, score_rows

TOKENS = torch.tensor([[3, 1, 4, 1], [5, 9, 0, 0]])
LENGTHS = [4, 2]
MASK = torch.tensor([[False, True, True, False], [False, True, False, False]])
PART = SimpleNamespace(tokens=TOKENS, mask=MASK)


class Says:
    """A model with a head that says each token's own number after it."""

    def __call__(self, *, input_ids: Tensor, use_cache: bool) -> Any:
        assert not use_cache
        return SimpleNamespace(logits=input_ids.unsqueeze(-1).float())


def scored(*columns: str) -> dict[str, list[list[float]]]:
    found = score_rows(_no_forward, Says(), PART, columns=columns, lengths=LENGTHS)
    assert list(found) == list(columns)
    return {name: column.tolist() for name, column in found.items()}


def _no_forward(model: Any, part: Any) -> dict[str, Tensor]:
    raise AssertionError("a model with a head is run by its head")


def test_passes_runs_the_model_once_for_its_own_columns_and_once_as_the_reference() -> None:
    assert passes(["old_logp"], None) == [("old_logp",)]
    assert passes(["ref_logp", "old_logp"], None) == [("old_logp",), ("ref_logp",)]
    assert passes(["values", "bootstrap"], "value") == [("values", "bootstrap")]
    assert passes([], "score") == []


@pytest.mark.parametrize(
    ("columns", "head", "named"),
    [
        (["values"], None, "values with a model whose head is a vocabulary"),
        (["score", "old_logp"], "score", "old_logp with a model whose head is score"),
        (["score"], "value", "score with a model whose head is value"),
    ],
)
def test_passes_refuses_a_column_that_the_head_does_not_say(
    columns: list[str], head: str | None, named: str
) -> None:
    with pytest.raises(BadDataError) as error:
        passes(columns, head)
    assert str(error.value) == f"Cannot score {named}"


def test_every_head_has_a_forward_and_columns() -> None:
    assert FORWARDS.keys() == COLUMNS.keys()


def test_log_probabilities_are_zero_where_nothing_is_trained_and_have_no_gradient() -> None:
    logp = torch.full((2, 4), -2.0, requires_grad=True)
    parts = []

    def forward(model: Any, part: Any) -> dict[str, Tensor]:
        parts.append(part)
        return {"logp": logp * 1.0}

    names = ("old_logp", "ref_logp")
    found = score_rows(forward, None, PART, columns=names, lengths=LENGTHS)
    assert parts == [PART]
    for name in names:
        assert found[name].tolist() == [[0.0, -2.0, -2.0, 0.0], [0.0, -2.0, 0.0, 0.0]]
        assert not found[name].requires_grad


def test_a_value_stands_before_its_token_and_the_bootstrap_after_the_last_one() -> None:
    assert scored("values", "bootstrap") == {
        "values": [[0.0, 3.0, 1.0, 0.0], [0.0, 5.0, 0.0, 0.0]],
        "bootstrap": [[1.0], [9.0]],
    }


def test_a_score_is_of_the_last_trained_token() -> None:
    assert scored("score") == {"score": [[4.0], [9.0]]}
