"""A model's scores of given tokens: the columns that credit and losses read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.forward import policy_forward
from holdfast_worker.trainer.model.heads import (
    at_last,
    numbers_after,
    score_forward,
    value_forward,
    values_before,
)

# How a model that is trained is run, by its head.
FORWARDS = {None: policy_forward, "value": value_forward, "score": score_forward}
# What a model with this head can compute. `ref_logp` is the reference's `old_logp`.
COLUMNS = {None: ("old_logp", "ref_logp"), "value": ("values", "bootstrap"), "score": ("score",)}


def passes(columns: Sequence[str], head: str | None) -> list[tuple[str, ...]]:
    """The columns by forward over the batch: the model's own together, then the reference's."""
    wrong = [name for name in columns if name not in COLUMNS[head]]
    if wrong:
        raise BadDataError(
            f"Cannot score {wrong[0]} with a model whose head is {head or 'a vocabulary'}"
        )
    policy_columns = tuple(name for name in columns if name != "ref_logp")
    return [
        names for names in (policy_columns, ("ref_logp",) if "ref_logp" in columns else ()) if names
    ]


@torch.no_grad()
def score_rows(
    forward: Callable[[Any, Any], dict[str, Tensor]],
    model: Any,
    part: Any,
    *,
    columns: Sequence[str],
    lengths: Sequence[int],
) -> dict[str, Tensor]:
    """
    [B, T] for each token, 0 where it is not trained; [B, 1] for each sequence. `forward`: how a
    model without a head is run; `lengths`: tokens of the rows.
    """
    if columns[0] in COLUMNS[None]:
        logp = forward(model, part)["logp"]
        return {name: torch.where(part.mask, logp, 0.0) for name in columns}
    after = numbers_after(model, part.tokens)
    ends = torch.tensor(lengths, device=after.device)[:, None]
    present = torch.arange(after.shape[1], device=after.device) < ends
    found = {
        "values": torch.where(part.mask, values_before(after), 0.0),
        "bootstrap": at_last(after, present)[:, None],
        "score": at_last(after, part.mask)[:, None],
    }
    return {name: found[name] for name in columns}
