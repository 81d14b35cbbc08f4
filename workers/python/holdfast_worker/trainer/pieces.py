"""The micro-batches of a step by rank, as indices of sequences, before there are tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast_worker.trainer.batch import SequenceData, cut, cut_pairs
from holdfast_worker.trainer.model.families import Family, cut_packed, families_of


@dataclass(frozen=True)
class Piece:
    """
    A micro-batch. `rows`: indices of sequences; `shared`: for each, the number of tokens that its
    family starts with, if packed.
    """

    rows: list[int]
    shared: list[int]


@dataclass(frozen=True)
class Pieces:
    """The micro-batches of every rank, the same number on each. Tokens include padding."""

    ranks: list[list[Piece]]
    longest_tokens: int  # Of one sequence.
    micro_batch_tokens: int  # Of the largest micro-batch.

    @classmethod
    def of(
        cls,
        sequences: Sequence[SequenceData],
        tokens_max: int,
        *,
        world_size: int,
        pairs: bool = False,
        packed: bool = False,
    ) -> Pieces:
        lengths = [len(sequence.tokens) for sequence in sequences]
        if packed:
            families = cut_packed(
                families_of(sequences),
                lengths,
                whole=pairs,
                tokens_max=tokens_max,
                world_size=world_size,
            )
            largest = max(
                sum(family.tokens(lengths) for family in piece)
                for rank in families
                for piece in rank
            )
            return cls(
                [[_laid_out(piece) for piece in rank] for rank in families], max(lengths), largest
            )
        ranks = (cut_pairs if pairs else cut)(lengths, tokens_max=tokens_max, world_size=world_size)
        largest = max(
            len(rows) * max(lengths[row] for row in rows) for rank in ranks for rows in rank if rows
        )
        return cls([[Piece(rows, []) for rows in rank] for rank in ranks], max(lengths), largest)

    @property
    def count(self) -> int:
        """Of all ranks, without fillers."""
        return sum(1 for rank in self.ranks for piece in rank if piece.rows)


def _laid_out(families: Sequence[Family]) -> Piece:
    """Rows of families, one after the other."""
    rows = [(row, family.shared) for family in families for row in family.rows]
    return Piece([row for row, _ in rows], [shared for _, shared in rows])
