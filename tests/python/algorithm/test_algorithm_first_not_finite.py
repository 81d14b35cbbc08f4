"""The operation of a user's loss that gave the first value that is not finite."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from holdfast_worker.algorithm.first_not_finite import FirstNotFinite

SEQUENCES = [7, 3]
MASK = torch.tensor([[True, True, False], [True, True, True]])
ZEROS = torch.zeros(2, 3)


def watch(work: Callable[[], object], mask: Tensor = MASK, sequences: list[int] = SEQUENCES):
    with FirstNotFinite(__file__, sequences, mask) as watched:
        work()
    return watched.culprit


def test_it_names_the_line_the_operation_the_sequence_and_the_token() -> None:
    x = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])

    def loss() -> None:
        half = x * 0.5
        torch.log(half)

    culprit = watch(loss)
    assert culprit is not None
    line = loss.__code__.co_firstlineno + 2
    assert culprit.text == f"{__file__}:{line} log, at `torch.log(half)`"
    assert (culprit.node, culprit.sequence, culprit.token) == (2, 3, 2)


def test_it_keeps_the_first_and_ignores_what_follows_from_it() -> None:
    def loss() -> None:
        first = torch.div(ZEROS, ZEROS)
        torch.log(first)

    culprit = watch(loss)
    assert culprit is not None
    assert (culprit.text.split(", ")[0].split()[-1], culprit.sequence) == ("div", 7)


def test_masked_values_may_be_anything() -> None:
    values = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    assert watch(lambda: torch.log(values)) is None
    untrained = torch.zeros(2, 3, dtype=torch.bool)
    assert watch(lambda: torch.log(ZEROS), mask=untrained) is None


def test_numbers_of_sequences_of_pairs_and_of_the_step_have_no_token() -> None:
    rows = torch.tensor([1.0, 0.0])
    sequence = watch(lambda: torch.log(rows))
    assert sequence is not None and (sequence.sequence, sequence.token) == (3, None)
    pair = watch(lambda: torch.log(rows[1:]))
    assert pair is not None and (pair.sequence, pair.token) == (7, None)
    step = watch(lambda: torch.log(rows[1]))
    assert step is not None and (step.sequence, step.token) == (None, None)


def test_a_pair_counts_only_if_both_of_its_sequences_are_trained() -> None:
    mask = torch.tensor([[True], [True], [True], [False]])
    margins = torch.tensor([1.0, 0.0])
    assert watch(lambda: torch.log(margins), mask, [0, 1, 2, 3]) is None
    whole = torch.ones(4, 1, dtype=torch.bool)
    culprit = watch(lambda: torch.log(margins), whole, [0, 1, 2, 3])
    assert culprit is not None and culprit.sequence == 2


def test_shapes_of_no_sequence_whole_numbers_and_code_of_other_files_are_not_looked_at() -> None:
    assert watch(lambda: torch.log(torch.zeros(5))) is None
    assert watch((ZEROS == 0).long) is None
    with FirstNotFinite("other.py", SEQUENCES, MASK) as watched:
        torch.log(ZEROS)
    assert watched.culprit is None
