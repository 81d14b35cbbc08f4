"""
The arguments of an algorithm's `loss` and `statistics`: `x`, one micro-batch's inputs, and `s`,
sums over the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from holdfast_worker.algorithm.source import AlgorithmError, did_you_mean

# What each input ranges over: token [B, T], sequence [B], pair [B / 2], step []. As
# `algs/language/inputs.ts` has it.
KINDS = {
    "logp": "token",
    "entropy": "token",
    "values": "token",
    "score": "sequence",
    "old_logp": "token",
    "behaviour_logp": "token",
    "ref_logp": "token",
    "advantage": "token",
    "returns": "token",
    "old_values": "token",
    "length": "sequence",
    "group_length": "sequence",
    "staleness": "sequence",
    "label": "sequence",
    "margin": "pair",
    "n_tokens": "step",
    "n_sequences": "step",
    "n_groups": "step",
    "n_pairs": "step",
}


def kind_of(name: str) -> str:
    return "step" if name.startswith("coef.") else KINDS[name]


# Torch computes the last few numbers of a tensor with different instructions: rows that end with
# its widest vectors give each token the same bits, regardless of its neighbours.
WIDTH = 64


class Inputs:
    """
    One micro-batch as a loss sees it: B sequences of T positions, padded. Every input is an
    attribute, 0 at masked positions, before any operation. `mask` [B, T] is true on trained tokens.
    Numbers of the step are tensors without dimensions.
    """

    def __init__(
        self,
        mask: Tensor,
        read: Callable[[str], Tensor],
        *,
        dtype: torch.dtype,
        old_is_current: bool = False,
    ) -> None:
        self.mask = mask = widened(mask)
        self.coef = _Coefficients(self)
        self._read = read
        self._dtype = dtype
        self._old_is_current = old_is_current
        self._values: dict[str, Tensor] = {}
        rows = mask.any(-1)
        self._masks = {"token": mask, "sequence": rows}
        if len(rows) % 2 == 0:
            self._masks["pair"] = rows[::2] & rows[1::2]
        self._pairs = False  # Whether any input of pairs was requested.

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in KINDS:
            near = did_you_mean(name, list(KINDS))
            raise AttributeError(
                f"a loss has no input '{name}'{near}: there are {', '.join(KINDS)} and coef.NAME"
            )
        return self._input(name)

    def _input(self, name: str) -> Tensor:
        if name == "old_logp" and self._old_is_current:
            return self.logp.detach()
        if name not in self._values:
            raw = self._read(name)
            self._values[name] = raw if kind_of(name) == "step" else self._trained(name, raw)
        return self._values[name]

    def _trained(self, name: str, raw: Tensor) -> Tensor:
        """0 at masked positions: masked content can reach no value and no gradient."""
        kind = kind_of(name)
        wide = widened(raw) if kind == "token" else raw
        return torch.where(self._mask_of(kind), wide.to(self._dtype), 0.0)

    def _mask_of(self, kind: str) -> Tensor:
        if kind == "pair":
            self._pairs = True
        return self._masks[kind]

    def per_sequence_sum(self, x: Tensor) -> Tensor:
        """[B, T] -> [B]: sum over the trained tokens."""
        return row_sum(torch.where(self.mask, x, 0.0))

    def per_sequence_mean(self, x: Tensor) -> Tensor:
        """[B, T] -> [B]: sum over the trained tokens divided by max(length, 1)."""
        return self.per_sequence_sum(x) / self.mask.sum(-1).clamp(min=1)

    def per_token(self, x: Tensor) -> Tensor:
        """[B] -> [B, T]: a sequence's number at each of its trained tokens, 0 elsewhere."""
        return torch.where(self.mask, x.unsqueeze(-1), 0.0)

    def chosen(self, x: Tensor) -> Tensor:
        """[B] -> [B / 2]: the preferred sequence of each pair."""
        self._mask_of("pair")
        return x[0::2]

    def rejected(self, x: Tensor) -> Tensor:
        """[B] -> [B / 2]: the other sequence of each pair."""
        self._mask_of("pair")
        return x[1::2]


def widened(rows: Tensor, value: Any = 0) -> Tensor:
    return torch.nn.functional.pad(rows, (0, -rows.shape[-1] % WIDTH), value=value)


def row_sum(rows: Tensor) -> Tensor:
    """[B, T] -> [B]. On the CPU token by token, so padding changes no bit."""
    return rows.cumsum(-1)[:, -1] if rows.device.type == "cpu" else rows.sum(-1)


class _Coefficients:
    """`x.coef.NAME`."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._inputs._input(f"coef.{name}")

    __getitem__ = __getattr__


class Sums:
    """
    `s`: what `statistics` returned, summed over the whole step: float64 tensors without dimensions
    or gradient.
    """

    def __init__(self, values: Mapping[str, float], device: Any) -> None:
        self._values = values
        self._device = device

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._values:
            has = (
                f"it returns {', '.join(self._values)}"
                if self._values
                else "there is no statistics(x, c)"
            )
            raise AttributeError(
                f"statistics has no '{name}'{did_you_mean(name, list(self._values))}: {has}"
            )
        return torch.tensor(self._values[name], dtype=torch.float64, device=self._device)

    __getitem__ = __getattr__


def masked(x: Inputs, value: Any, what: str) -> tuple[str, Tensor, Tensor]:
    """
    (kind, value, mask) of an unreduced tensor. A value of a different shape was reduced, or
    broadcast by mistake.
    """
    shapes = {tuple(mask.shape): kind for kind, mask in x._masks.items()}
    kind = shapes.get(tuple(value.shape)) if isinstance(value, Tensor) else None
    if kind is None:
        found = (
            f"a tensor of shape {list(value.shape)}"
            if isinstance(value, Tensor)
            else f"a {type(value).__name__}"
        )
        raise AlgorithmError(
            f"Cannot reduce {what} because it is {found}: return it unreduced, [B, T], [B] or [B / "
            "2], which here are "
            f"{', '.join(str(list(shape)) for shape in shapes)}"
        )
    return kind, value, x._mask_of(kind)
