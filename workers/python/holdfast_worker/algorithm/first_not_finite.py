"""Which operation of a user's loss gave the first value that is not finite."""

from __future__ import annotations

import traceback
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from holdfast_worker.loss.step import Culprit


class FirstNotFinite(TorchFunctionMode):
    """
    While entered, checks the result of every torch operation that `file` calls on values of a
    micro-batch of `sequences` (rows of `mask`). `culprit`: the first trained position with a value
    that is not finite; None while all are finite.
    """

    def __init__(self, file: str, sequences: list[int], mask: Tensor) -> None:
        super().__init__()
        self.file = file
        self.sequences = sequences
        self.mask = mask
        self.operations = 0
        self.culprit: Culprit | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operations += 1
        if self.culprit is None and isinstance(result, Tensor) and result.is_floating_point():
            self.culprit = self._look(result, getattr(func, "__name__", str(func)))
        return result

    def _look(self, value: Tensor, operation: str) -> Culprit | None:
        frames = [frame for frame in traceback.extract_stack() if frame.filename == self.file]
        mask = self._mask(value)
        if not frames or mask is None:
            return None
        bad = (~torch.isfinite(value.detach()) & mask).nonzero()
        if len(bad) == 0:
            return None
        where = [int(place) for place in bad[0]]
        row = where[0] * (2 if len(value) != len(self.sequences) else 1) if where else None
        text = f"{self.file}:{frames[-1].lineno} {operation}, at `{frames[-1].line}`"
        sequence = None if row is None else self.sequences[row]
        return Culprit(self.operations, text, sequence, where[1] if len(where) > 1 else None)

    def _mask(self, value: Tensor) -> Tensor | None:
        """
        The positions at which a value of this shape counts; None for shapes that belong to no
        sequence.
        """
        token, rows = self.mask, self.mask.any(-1)
        shapes = {token.shape: token, rows.shape: rows, torch.Size(): torch.ones_like(rows[0])}
        if len(rows) % 2 == 0:
            shapes[rows[::2].shape] = rows[::2] & rows[1::2]
        return shapes.get(value.shape)
