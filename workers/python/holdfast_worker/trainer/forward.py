"""The live inputs of a loss: log-probabilities and entropy of the policy, in float32, aligned to their targets."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional


class Rows(Protocol):
    """The part of a micro-batch that a forward reads."""

    tokens: Tensor  # [B, T] int64, right padded
    mask: Tensor  # [B, T] bool


def policy_forward(model: Any, rows: Rows, *, need: set[str], temperature: float) -> dict[str, Tensor]:
    """
    `logp` and, if needed, `entropy`, both [B, T] float32 of the logits divided by the temperature. Position t belongs
    to the target tokens[:, t]. Columns in which no row is trained are 0 and cost no logits. There is no attention mask:
    rows are padded on the right and the model is causal, so padding is never seen from a trained position.
    """
    tokens, mask = rows.tokens, rows.mask
    trained = mask.any(0)
    trained[0] = False
    places = trained.nonzero()[:, 0]  # [K] columns with a trained target
    if places.numel() == 0:  # A filler: it still runs, as ZeRO-3 hangs where ranks run different forwards.
        places = torch.ones(1, dtype=torch.long, device=tokens.device)
    logits = model(input_ids=tokens, use_cache=False, logits_to_keep=places - 1).logits.float()  # [B, K, V]
    if temperature != 1.0:
        logits = logits / temperature
    targets = tokens[:, places]
    flat = logits.flatten(0, 1)
    if "entropy" not in need:
        logp = -functional.cross_entropy(flat, targets.flatten(), reduction="none").view_as(targets)
        return {"logp": _spread(logp, places, mask)}
    log_probabilities = flat.log_softmax(-1)
    logp = -functional.nll_loss(log_probabilities, targets.flatten(), reduction="none").view_as(targets)
    entropy = -(log_probabilities.exp() * log_probabilities).sum(-1).view_as(targets)
    return {"logp": _spread(logp, places, mask), "entropy": _spread(entropy, places, mask)}


def _spread(values: Tensor, places: Tensor, mask: Tensor) -> Tensor:
    """[B, K] at its columns of [B, T]. Untrained positions hold whatever the model says there, or 0."""
    return values.new_zeros(mask.shape).index_copy(1, places, values)
