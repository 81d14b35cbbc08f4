"""What a step is computed on: counts, and micro-batches that fit together."""

from __future__ import annotations

import pytest

from holdfast_worker.loss import Counts, LossProgram, count_step
from loss_expressions import Nodes, likelihood
from loss_model import Model


def test_ranks_must_bring_equally_many_micro_batches_and_whole_pairs() -> None:
    model = Model([[-1.0], [-2.0]])
    with pytest.raises(ValueError, match=r"different numbers of micro-batches: \[1, 2\]"):
        model.step(LossProgram(likelihood()), [[0]], gather=lambda value: [value, 2], world_size=2)
    n = Nodes()
    gap = n("sub", n("chosen", n("perSequenceSum", n.input("logp"))), n.input("margin"))
    with pytest.raises(ValueError, match="pairs are never cut"):
        model.step(LossProgram(n.expression(n("stepSum", gap))), [[0], [1]])


def test_count_step_leaves_out_what_has_no_trained_token() -> None:
    masks = [[0, 1, 1], [0, 1], [0, 0], [0, 1, 1, 1], [0, 0], [0, 0]]
    groups = [4, 4, 4, 9, 2, 2]
    expected = Counts(
        n_tokens=6, n_sequences=3, n_groups=2, n_pairs=0, group_length={4: 3, 9: 3, 2: 0}
    )
    assert count_step(masks, groups) == expected
    assert count_step(masks, groups, pairs=True).n_pairs == 1
