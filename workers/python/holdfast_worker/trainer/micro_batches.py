"""Padded tensors of micro-batches: the input of the loss interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from holdfast_worker.loss import MicroBatch
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.batch import SequenceData

SEQUENCE_INPUTS = {"staleness", "label"}  # [B]
PAIR_INPUTS = {"margin"}  # [B / 2]; every other column is [B, T]


def check_columns(names: set[str], sequences: Sequence[SequenceData]) -> set[str]:
    """`names`, after checking that every sequence has those columns."""
    for name in sorted(names):
        for sequence in sequences:
            if name not in sequence.token_columns and name not in sequence.sequence_columns:
                raise BadDataError(
                    "Cannot train "
                    f"because the loss reads '{name}' and the batch has no such column: current "
                    "columns are "
                    f"{sorted({*sequence.token_columns, *sequence.sequence_columns})}"
                )
    return names


def micro_batch(
    sequences: Sequence[SequenceData],
    rows: Sequence[int],
    *,
    columns: set[str],
    device: str,
    pairs: bool = False,
    shared: Sequence[int] = (),
) -> MicroBatch:
    """
    One MicroBatch. `rows`: indices into `sequences`; empty: a filler of one all-masked row, or
    pair. `shared`: for each row, if rows of a group are computed as a family.
    """
    chosen = [sequences[place] for place in rows]
    filler = [-1, -1] if pairs else [-1]
    height = max(len(chosen), len(filler))
    width = max([2, *(len(sequence.tokens) for sequence in chosen)])
    tokens = np.zeros((height, width), np.int64)
    mask = np.zeros((height, width), bool)
    values = {
        name: np.zeros((height, width), np.float32)
        for name in columns - SEQUENCE_INPUTS - PAIR_INPUTS
    }
    for row, sequence in enumerate(chosen):
        length = len(sequence.tokens)
        tokens[row, :length] = sequence.tokens
        mask[row, :length] = sequence.mask
        for name, column in values.items():
            column[row, :length] = sequence.token_columns[name]
    move = lambda array: torch.from_numpy(array).to(device)  # noqa: E731
    fields = {name: move(column) for name, column in values.items()}
    for name in columns & (SEQUENCE_INPUTS | PAIR_INPUTS):
        numbers = [sequence.sequence_columns[name] for sequence in chosen] or [0.0] * height
        fields[name] = torch.tensor(
            numbers[:: 2 if name in PAIR_INPUTS else 1], dtype=torch.float32, device=device
        )
    return MicroBatch(
        tokens=move(tokens),
        mask=move(mask),
        columns=fields,
        sequences=list(rows) or filler,
        groups=[sequence.group for sequence in chosen] or filler,
        lengths=[len(sequence.tokens) for sequence in chosen] or [width] * height,
        shared=list(shared),
    )
