"""
Families: rows of a micro-batch that start with the same tokens, none of them trained. The samples
of a prompt form a family, and so do the two sides of a preference. A packed family has its common
beginning once, followed by each row's rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right

from holdfast_worker.trainer.batch import SequenceData, dealt, limit_of

# Kernel(query, key, value, mask) of [B, heads, T, size] -> [B, T, heads, size]; a mask of None is
# causal.
Kernel = Callable[[Tensor, Tensor, Tensor, Any], Tensor]


@dataclass(frozen=True)
class Family:
    """
    `rows`: indices of its sequences, in order. `shared`: number of tokens that all start with,
    computed once.
    """

    rows: tuple[int, ...]
    shared: int

    def tokens(self, lengths: Sequence[int]) -> int:
        """Number of tokens of its packed rows. `lengths`: by index."""
        return self.shared + sum(lengths[row] - self.shared for row in self.rows)

    def parts(self, lengths: Sequence[int], tokens_max: int) -> list[Family]:
        """The fewest families that have at most `tokens_max` tokens or one row each."""
        found = [Family(self.rows[:1], self.shared)]
        for row in self.rows[1:]:
            larger = Family((*found[-1].rows, row), self.shared)
            if larger.tokens(lengths) <= tokens_max:
                found[-1] = larger
            else:
                found.append(Family((row,), self.shared))
        return found


def families_of(sequences: Sequence[SequenceData]) -> list[Family]:
    """By group, in order. A row keeps at least one token."""
    members: dict[int, list[int]] = {}
    for place, sequence in enumerate(sequences):
        members.setdefault(sequence.group, []).append(place)
    return [
        Family(tuple(rows), _shared([sequences[row] for row in rows])) for rows in members.values()
    ]


def _shared(rows: Sequence[SequenceData]) -> int:
    if len(rows) < 2:
        return 0
    untrained = min(min(_first_trained(row), len(row.tokens) - 1) for row in rows)
    heads = np.stack([row.tokens[:untrained] for row in rows])
    differs = (heads != heads[0]).any(0)
    return int(differs.argmax()) if differs.any() else untrained


def _first_trained(row: SequenceData) -> int:
    return int(row.mask.argmax()) if row.mask.any() else len(row.mask)


def cut_packed(
    families: Sequence[Family],
    lengths: Sequence[int],
    *,
    tokens_max: int,
    world_size: int,
    whole: bool = False,
) -> list[list[list[Family]]]:
    """
    Micro-batches of every rank, like `cut` for rows; each is a list of families of at most
    `tokens_max` tokens together. A larger family is split, unless it must stay `whole`; then it is
    alone, like a longer row.
    """
    total = sum(family.tokens(lengths) for family in families)
    limit = limit_of(total, tokens_max, world_size)
    units = [
        part
        for family in families
        for part in ([family] if whole else family.parts(lengths, limit))
    ]
    units.sort(key=lambda unit: (unit.tokens(lengths), unit.rows[0]))
    pieces: list[list[Family]] = []
    held = 0
    for unit in units:
        size = unit.tokens(lengths)
        if pieces and held + size <= limit:
            pieces[-1].append(unit)
            held += size
        else:
            pieces.append([unit])
            held = size
    return dealt(pieces, world_size)


class PackedFamilies:
    """
    How packed families are arranged in one row and attend. B rows of at most T tokens, F families,
    L packed tokens; `lengths`, `groups` and `shared` [B] describe the rows; neighbours of one group
    are a family.
    """

    def __init__(
        self, lengths: Sequence[int], groups: Sequence[int], shared: Sequence[int]
    ) -> None:
        self.lengths, self.shared = list(lengths), list(shared)
        self.is_first = [
            row == 0 or groups[row] != groups[row - 1] for row in range(len(lengths))
        ]  # [B] of its family
        width = max(lengths)
        self.where = np.zeros(
            (len(lengths), width), np.int64
        )  # [B, T] place of each token in the packed row
        tokens, first, at = [], 0, 0  # `tokens`: of each row, those that stand behind all before it
        for row, (length, is_first) in enumerate(zip(lengths, self.is_first)):
            first = row if is_first else first
            tail = np.arange(0 if is_first else shared[row], length)
            places = np.concatenate([self.where[first, : tail[0]], at + np.arange(len(tail))])
            # After a row's end its last token is repeated: no token of the row sees it, and it
            # belongs to no other row.
            self.where[row] = np.pad(places, (0, width - length), "edge")
            tokens.append(tail)
            at += len(tail)
        rows = np.repeat(np.arange(len(lengths)), [len(tail) for tail in tokens])
        self.positions = torch.from_numpy(
            np.concatenate(tokens)
        )  # [L] of each packed token in its sequence
        self.kept = (
            torch.from_numpy(rows * width) + self.positions
        )  # [L] its place in the flat rows

    def to(self, device: Any) -> PackedFamilies:
        """Everything that attention reads, on the device."""
        lengths, shared = np.array(self.lengths), np.array(self.shared)
        firsts = np.flatnonzero(self.is_first)  # [F]
        heads = shared[firsts]
        wide, long = int(heads.max()), int((lengths - shared).max())
        head = np.minimum(
            np.arange(wide), np.maximum(heads - 1, 0)[:, None]
        )  # [F, P] tokens of the first row
        rest = np.minimum(
            shared[:, None] + np.arange(long), lengths[:, None] - 1
        )  # [B, C] tokens of each row
        # [L] where a packed token's answer is among both, one after another
        answers = np.zeros(len(self.kept), np.int64)
        for family, row in enumerate(firsts):
            answers[self.where[row, : shared[row]]] = family * wide + np.arange(shared[row])
        for row, (length, prefix) in enumerate(zip(lengths, shared)):
            answers[self.where[row, prefix:length]] = (
                heads.size * wide + row * long + np.arange(length - prefix)
            )
        rows = np.arange(len(lengths))[:, None]
        found = (self.where[firsts[:, None], head], self.where[rows, rest], self.where, answers)
        self.head, self.rest, self.row, self.answers = (
            torch.from_numpy(part).to(device) for part in found
        )
        # [B, C]; filled up likewise, so that each sees a key
        self.positions_of_rest = torch.from_numpy(rest).to(device)
        self.kept, self.positions = self.kept.to(device), self.positions.to(device)
        self.masks: dict[int | None, Tensor] = {}
        return self

    def attend(self, kernel: Kernel, *parts: Tensor, window: int | None) -> Tensor:
        """
        [1, L, heads, size] from query, key and value [1, heads, L, size]: a row sees its family's
        beginning and itself. On a CPU all rows at once, under a mask. Elsewhere row by row without
        one, because torch's flash attention accepts no mask.
        """
        if parts[0].device.type != "cpu":
            return self.attend_in_turn(kernel, *parts, window=window)

        def taken(part: Tensor, places: Tensor) -> Tensor:
            flat = part.transpose(1, 2)[0].flatten(
                1
            )  # [L, heads * size]: rows that are copied whole
            found = flat.index_select(0, places.flatten())
            return found.view(*places.shape, -1, part.shape[-1]).transpose(1, 2)

        query, key, value = parts
        mask = band(self.head.shape[1], window, query.device)
        heads = kernel(*(taken(part, self.head) for part in parts), mask)
        rests = kernel(
            taken(query, self.rest),
            taken(key, self.row),
            taken(value, self.row),
            self._mask(window),
        )
        both = torch.cat([heads.flatten(0, 1), rests.flatten(0, 1)])
        return both.index_select(0, self.answers)[None]

    def attend_in_turn(self, kernel: Kernel, *parts: Tensor, window: int | None) -> Tensor:
        """Like `attend`, with one call for each beginning and each rest."""
        answers, at, head = [], 0, [part[:, :, :0] for part in parts]

        def here(length: int) -> list[Tensor]:
            nonlocal at
            at += length
            return [part[:, :, at - length : at] for part in parts]

        for length, shared, is_first in zip(self.lengths, self.shared, self.is_first):
            if is_first:
                head = here(shared)
                if shared:
                    answers.append(kernel(*head, band(shared, window, head[0].device)))
            suffix = here(length - shared)
            key, value = (torch.cat(both, dim=2) for both in zip(head[1:], suffix[1:]))
            whole = band(length, window, key.device)
            mask = (
                causal_lower_right(length - shared, length)
                if whole is None
                else whole[:, :, shared:]
            )
            answers.append(kernel(suffix[0], key, value, mask))
        return torch.cat(answers, dim=1)

    def _mask(self, window: int | None) -> Tensor:
        """[B, 1, C, T] what a token of a rest sees of its row; created once for all layers."""
        if window not in self.masks:
            back = self.positions_of_rest[:, :, None] - torch.arange(
                self.row.shape[1], device=self.row.device
            )
            seen = back >= 0 if window is None else (back >= 0) & (back < window)
            self.masks[window] = seen[:, None]
        return self.masks[window]


def band(length: int, window: int | None, device: Any) -> Tensor | None:
    """[1, 1, T, T] what a sliding window lets a token see; None if that is everything before it."""
    if window is None or length <= window:
        return None
    places = torch.arange(length, device=device)
    back = places[:, None] - places[None]
    return ((back >= 0) & (back < window))[None, None]
