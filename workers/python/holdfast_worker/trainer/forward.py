"""
The live inputs of a loss: log-probabilities and entropy of the policy, in float32, aligned to their
targets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from holdfast_worker.trainer.model.output_head import ModelInputs, target_values, values_in_chunks
from holdfast_worker.trainer.packing import PackedRows, packed_row


class Rows(PackedRows, Protocol):
    """
    The part of a micro-batch that a forward reads; what packing adds is read only where rows are
    packed.
    """

    mask: Tensor  # [B, T] bool


def policy_forward(
    model: Any,
    rows: Rows,
    *,
    need: set[str],
    temperature: float,
    chunk_tokens: int | None,
    packed: bool = False,
) -> dict[str, Tensor]:
    """
    `logp` and, if needed, `entropy`, both [B, T] float32 of the logits divided by the temperature.
    Position t belongs to the target tokens[:, t]. More than `chunk_tokens` targets are computed
    chunk by chunk; null: never. `packed`: as one row of all sequences, each family's beginning
    once; the result is then spread over the padded rows.
    """
    inputs, targets, spread = (_packed if packed else _padded)(rows)
    entropy = "entropy" in need
    if chunk_tokens is not None and targets.numel() > chunk_tokens:
        values = values_in_chunks(
            model, inputs, targets, chunk=chunk_tokens, temperature=temperature, entropy=entropy
        )
    else:
        logits = model(**inputs).logits  # [B, K, V]
        flat = target_values(
            logits.flatten(0, 1), targets.flatten(), temperature=temperature, entropy=entropy
        )
        values = [value.view_as(targets) for value in flat]
    return {name: spread(value) for name, value in zip(("logp", "entropy"), values)}


Inputs = tuple[ModelInputs, Tensor, Callable[[Tensor], Tensor]]


def _padded(rows: Rows) -> Inputs:
    """
    The model's arguments, the targets [B, K], and a function that puts values [B, K] at their
    places in [B, T]. Columns in which no row is trained are 0 and cost no logits. There is no
    attention mask: rows are padded on the right and the model is causal, so padding is never seen
    from a trained position.
    """
    tokens, mask = rows.tokens, rows.mask
    trained = mask.any(0)
    trained[0] = False
    places = trained.nonzero()[:, 0]  # [K] columns with a trained target
    if (
        places.numel() == 0
    ):  # A filler: it still runs, because ZeRO-3 hangs if ranks run different forwards.
        places = torch.ones(1, dtype=torch.long, device=tokens.device)
    inputs = {"input_ids": tokens, "use_cache": False, "logits_to_keep": places - 1}
    # Untrained positions of these columns contain arbitrary values.
    return (
        inputs,
        tokens[:, places],
        lambda values: values.new_zeros(mask.shape).index_copy(1, places, values),
    )


def _packed(rows: Rows) -> Inputs:
    """
    Like `_padded`, for one row: logits are computed only for tokens before a trained one, once for
    each trained token that follows.
    """
    row = packed_row(rows)
    trained = rows.mask.clone()
    trained[:, 0] = False  # Nothing precedes it.
    places = trained.flatten().nonzero()[:, 0]  # [K] places in the flat rows
    if places.numel() == 0:
        places = torch.ones(1, dtype=torch.long, device=rows.tokens.device)

    def spread(values: Tensor) -> Tensor:
        flat = values.new_zeros(rows.mask.numel()).index_copy(0, places, values[0])
        return flat.view(rows.mask.shape)

    logit_places = row.where.flatten()[places - 1]
    return (
        {**row.inputs, "logits_to_keep": logit_places},
        rows.tokens.flatten()[places][None],
        spread,
    )
