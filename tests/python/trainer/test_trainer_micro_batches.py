"""Micro-batches: padding, fillers, and what a batch lacks."""

from __future__ import annotations

import pytest

from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.micro_batches import check_columns, micro_batch
from recorded_batches import sequences_of
from trainer_harness import Artifacts, trajectory_batch


@pytest.fixture
def artifacts(tmp_path):
    return Artifacts(tmp_path)


def test_micro_batch_pads_on_the_right_and_masks_a_filler_whole(artifacts):
    sequences = sequences_of(artifacts, trajectory_batch(artifacts, [[4, 6]]))
    part = micro_batch(sequences, [1, 0], columns={"advantage", "staleness"}, device="cpu")
    assert part.tokens.shape == part.mask.shape == part.columns["advantage"].shape == (2, 6)
    assert part.columns["staleness"].tolist() == [0, 0]
    assert part.mask[1].tolist() == [False, False, False, True, False, False]
    assert (part.sequences, part.groups) == ([1, 0], [0, 0])
    filler = micro_batch(sequences, [], columns={"advantage"}, device="cpu")
    assert (filler.sequences, filler.mask.any().item()) == ([-1], False)


def test_check_columns_names_what_the_batch_lacks(artifacts):
    sequences = sequences_of(artifacts, trajectory_batch(artifacts, [[4]]))
    with pytest.raises(
        BadDataError,
        match="reads 'ref_logp' .*current columns are .'advantage', 'behaviour_logp', 'staleness'",
    ):
        check_columns({"ref_logp"}, sequences)
