"""Padded tensors of a cut: what the loss interpreter is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from holdfast_worker.loss.step import MicroBatch
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.batch import SequenceData

LIVE_INPUTS = {"logp", "entropy"}
SEQUENCE_INPUTS = ("staleness",)


def check_inputs(inputs: set[str], sequences: Sequence[SequenceData], *, optional: set[str]) -> set[str]:
    """The token columns to build: what the loss reads, less what is live. Raises where the batch lacks one."""
    names = {name for name in inputs if name not in LIVE_INPUTS and name not in SEQUENCE_INPUTS}
    return {name for name in names if _has_column(name, sequences, name in optional)}


def _has_column(name: str, sequences: Sequence[SequenceData], optional: bool) -> bool:
    if all(name in sequence.token_columns for sequence in sequences):
        return True
    if optional:
        return False
    raise BadDataError(
        f"Cannot train as the loss reads '{name}' and the batch has no such column: current columns are "
        f"{sorted(sequences[0].token_columns)}"
    )


def pad(sequences: Sequence[SequenceData], rows: Sequence[int], *, columns: set[str], device: str) -> dict[str, Any]:
    """The fields of a MicroBatch. `rows`: places in `sequences`; none makes a filler of one all-masked row."""
    chosen = [sequences[place] for place in rows]
    height = max(len(chosen), 1)
    width = max([2, *(len(sequence.tokens) for sequence in chosen)])
    tokens = np.zeros((height, width), np.int64)
    mask = np.zeros((height, width), bool)
    values = {name: np.zeros((height, width), np.float32) for name in columns}
    for row, sequence in enumerate(chosen):
        length = len(sequence.tokens)
        tokens[row, :length] = sequence.tokens
        mask[row, :length] = sequence.mask
        for name, column in values.items():
            column[row, :length] = sequence.token_columns[name]
    move = lambda array: torch.from_numpy(array).to(device)  # noqa: E731
    fields = {name: move(column) for name, column in values.items()}
    for name in SEQUENCE_INPUTS:
        numbers = [sequence.sequence_columns.get(name, 0.0) for sequence in chosen] or [0.0]
        fields[name] = torch.tensor(numbers, dtype=torch.float32, device=device)
    return {
        "tokens": move(tokens),
        "mask": move(mask),
        "columns": fields,
        "sequences": list(rows) or [-1],
        "groups": [sequence.group for sequence in chosen] or [-1],
    }


def micro_batch(sequences: Sequence[SequenceData], rows: Sequence[int], *, columns: set[str], device: str) -> MicroBatch:
    """One MicroBatch of the given sequences."""
    return MicroBatch(**pad(sequences, rows, columns=columns, device=device))
