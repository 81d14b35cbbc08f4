"""A step's micro-batches by rank, and what an engine without room for them learns."""

from __future__ import annotations

import numpy as np

from holdfast_worker.trainer.batch import SequenceData
from holdfast_worker.trainer.pieces import Piece, Pieces


def sequence(length: int, *, group: int, trained: int = 1) -> SequenceData:
    """The tokens 0, 1, ... of which the last ones are trained."""
    mask = np.arange(length) >= length - trained
    return SequenceData(np.arange(length, dtype=np.int32), mask, group)


LENGTHS = [4, 2, 3, 5]
SEQUENCES = [sequence(length, group=place) for place, length in enumerate(LENGTHS)]


def test_padded_micro_batches_count_their_padding_and_share_nothing():
    pieces = Pieces.of(SEQUENCES, 8, world_size=1)
    assert pieces.ranks == [[Piece([1, 2], []), Piece([0], []), Piece([3], [])]]
    assert (pieces.longest_tokens, pieces.micro_batch_tokens, pieces.count) == (5, 6, 3)


def test_every_rank_has_equally_many_and_fillers_are_not_counted():
    pieces = Pieces.of(SEQUENCES[:3], 4, world_size=2)
    assert pieces.ranks == [[Piece([1], []), Piece([0], [])], [Piece([2], []), Piece([], [])]]
    assert pieces.count == 3


def test_pairs_stay_together_at_the_length_of_their_longer_side():
    pieces = Pieces.of(SEQUENCES, 8, world_size=1, pairs=True)
    assert pieces.ranks == [[Piece([0, 1], []), Piece([2, 3], [])]]
    assert pieces.micro_batch_tokens == 10


def test_packed_rows_stand_by_family_and_count_what_they_share_once():
    family = [sequence(6, group=0, trained=2), sequence(7, group=0, trained=3)]
    pieces = Pieces.of([*family, sequence(3, group=1)], 100, world_size=1, packed=True)
    assert pieces.ranks == [[Piece([2, 0, 1], [0, 4, 4])]]
    assert (pieces.longest_tokens, pieces.micro_batch_tokens) == (7, 3 + 4 + 2 + 3)
