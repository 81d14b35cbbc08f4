"""What a `loss` returns: unreduced tensors, each with the name of its reduction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holdfast_worker.algorithm.inputs import Inputs, masked, row_sum
from holdfast_worker.algorithm.source import AlgorithmError, did_you_mean

# Each is the masked sum over the whole step divided by one of its counts.
REDUCTIONS = {
    "sum": None,
    "token_mean": "n_tokens",
    "sequence_mean": "n_sequences",
    "group_mean": "n_groups",
    "pair_mean": "n_pairs",
}
HOW = f'return {{"loss": ("token_mean", tensor)}}: a tensor [B, T], [B] or [B / 2] with one of {", ".join(REDUCTIONS)}'


@dataclass
class Term:
    """One tensor to be reduced: its kind, and the positions that count."""

    reduction: str
    kind: str
    value: Tensor
    mask: Tensor

    def share(self) -> Tensor:
        """The micro-batch's part of the sum."""
        return torch.where(self.mask, self.value, 0.0).sum()

    def parts(self, sequences: list[int]) -> dict[int, float]:
        """
        What each sequence or pair adds to the sum over the step, by index, in float64. Fillers add
        nothing.
        """
        values = torch.where(self.mask, self.value.detach().double(), 0.0)
        sums = (row_sum(values) if self.kind == "token" else values).tolist()
        places = sequences[::2] if self.kind == "pair" else sequences
        return {place: part for place, part in zip(places, sums, strict=True) if place >= 0}


@dataclass
class Answer:
    """
    The loss is the sum of `terms`. A metric is a term, or one number that is the same in every
    micro-batch.
    """

    terms: list[Term]
    metrics: dict[str, Term | float]


def read_answer(x: Inputs, returned: Any, what: str) -> Answer:
    """Checks the form of what `what` (`loss() of my.py`) returned."""
    if not isinstance(returned, Mapping) or "loss" not in returned:
        kind = (
            "a scalar"
            if isinstance(returned, Tensor) and returned.dim() == 0
            else f"a {type(returned).__name__}"
        )
        raise AlgorithmError(
            f"Cannot use what {what} returned because it is {kind} without 'loss': {HOW}"
        )
    unknown = [str(key) for key in returned if key not in ("loss", "metrics")]
    if unknown:
        near = did_you_mean(unknown[0], ["loss", "metrics"])
        raise AlgorithmError(
            f"Cannot use what {what} returned because it has '{unknown[0]}'{near}: {HOW}, and "
            "metrics"
        )
    loss = returned["loss"]
    terms = loss if isinstance(loss, list) else [loss]
    metrics = returned.get("metrics", {})
    return Answer(
        [_term(x, term, f"the loss that {what} returned") for term in terms],
        {
            str(name): _metric(x, value, f"the metric '{name}' that {what} returned")
            for name, value in metrics.items()
        },
    )


def statistics_of(x: Inputs, returned: Any, what: str) -> dict[str, Term]:
    """What `statistics` returned: each to be summed over the step."""
    if not isinstance(returned, Mapping):
        kind = type(returned).__name__
        raise AlgorithmError(
            f'Cannot use what {what} returned because it is a {kind}: return {{"w": tensor}}'
        )
    named = {str(name): value for name, value in returned.items()}
    return {
        name: _reduced(x, "sum", value, f"'{name}' that {what} returned")
        for name, value in named.items()
    }


def _term(x: Inputs, value: Any, what: str) -> Term:
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)):
        raise AlgorithmError(f"Cannot reduce {what} because it has no reduction: {HOW}")
    reduction, tensor = value
    if reduction not in REDUCTIONS:
        raise AlgorithmError(
            f"Cannot reduce {what} "
            "because there is no reduction "
            f"'{reduction}'{did_you_mean(reduction, list(REDUCTIONS))}: "
            f"use {', '.join(REDUCTIONS)}"
        )
    return _reduced(x, reduction, tensor, what)


def _reduced(x: Inputs, reduction: str, tensor: Any, what: str) -> Term:
    kind, value, mask = masked(x, tensor, what)
    if REDUCTIONS[reduction] == "n_pairs" and kind != "pair":
        raise AlgorithmError(
            f"Cannot reduce {what} over pairs because it is a {kind} value: use x.chosen and "
            "x.rejected"
        )
    return Term(reduction, kind, value, mask)


def _metric(x: Inputs, value: Any, what: str) -> Term | float:
    if isinstance(value, tuple):
        return _term(x, value, what)
    if isinstance(value, Tensor) and value.dim() == 0:
        value = value.item()
    if isinstance(value, (int, float)):
        return float(value)
    raise AlgorithmError(
        f"Cannot use {what} because it is neither one number nor a tensor with its reduction: {HOW}"
    )


def same_number(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))
