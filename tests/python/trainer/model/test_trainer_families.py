"""
Families: what rows of a group begin with is computed once, with the loss and gradient of rows
computed apart.
"""

from __future__ import annotations

from functools import partial

import msgpack
import numpy as np
import pytest
import torch

from holdfast_worker.trainer.batch import SequenceData
from holdfast_worker.trainer.micro_batches import micro_batch
from holdfast_worker.trainer.model.families import Family, PackedFamilies, cut_packed, families_of
from holdfast_worker.trainer.packing import packed_row, use_packed_attention
from test_trainer_packing import gradients, llama, mistral
from trainer_harness import Trainer, trajectory_batch


def sequence(tokens, trained, group=0):
    return SequenceData(np.asarray(tokens, np.int32), np.asarray(trained, bool), group)


def family(group, *, prompt, rests, seed=0):
    """
    Sequences of one prompt; of each rest the first token is not trained, as a tool's answer is not.
    """
    random = np.random.default_rng([seed, group])
    head = random.integers(0, 97, prompt)
    return [
        sequence(
            [*head, *random.integers(0, 97, rest)],
            [False] * prompt + [True] + [rest % 2 == 0] * (rest - 1),
            group,
        )
        for rest in rests
    ]


SEQUENCES = [
    *family(0, prompt=7, rests=[5, 9, 1, 4]),
    *family(1, prompt=1, rests=[3]),
    *family(2, prompt=12, rests=[2, 2]),
    *family(3, prompt=4, rests=[8, 3, 6]),
]


def rows_of(sequences, places, *, families=True):
    shared = (
        {row: one.shared for one in families_of(sequences) for row in one.rows} if families else {}
    )
    return micro_batch(
        sequences,
        places,
        columns=set(),
        device="cpu",
        shared=[shared[place] for place in places] if families else [],
    )


@pytest.mark.parametrize("make", [llama, mistral, partial(mistral, 5), partial(mistral, 2)])
@pytest.mark.parametrize("chunk_tokens", [None, 9])
def test_families_give_the_values_and_gradients_of_padded_rows(make, chunk_tokens):
    model, places = make(), list(range(len(SEQUENCES)))
    need = {"logp", "entropy"}
    expected, slopes = gradients(model, packed=False, need=need, rows=rows_of(SEQUENCES, places))
    use_packed_attention(model)
    rows = rows_of(SEQUENCES, places)
    assert packed_row(rows).inputs["input_ids"].shape[1] == 7 + 19 + 4 + 12 + 4 + 4 + 17
    found, packed = gradients(model, packed=True, need=need, chunk_tokens=chunk_tokens, rows=rows)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-6, atol=1e-6)
    for name, slope in slopes.items():
        assert (packed[name] - slope).norm() <= 1e-6 * slope.norm(), name


@pytest.mark.parametrize("make", [llama, mistral, partial(mistral, 2)])
def test_one_call_for_all_rows_attends_as_one_call_for_each(make, monkeypatch):
    model, rows = make(), rows_of(SEQUENCES, list(range(len(SEQUENCES))))
    use_packed_attention(model)
    together, slopes = gradients(model, packed=True, rows=rows)
    monkeypatch.setattr(PackedFamilies, "attend", PackedFamilies.attend_in_turn)
    apart, turns = gradients(model, packed=True, rows=rows)
    torch.testing.assert_close(together["logp"], apart["logp"], rtol=1e-6, atol=1e-6)
    for name, slope in slopes.items():
        assert (turns[name] - slope).norm() <= 1e-6 * slope.norm(), name


def test_a_row_that_is_not_a_number_reaches_no_other_family():
    model = llama()
    use_packed_attention(model)
    rows = rows_of(SEQUENCES, list(range(len(SEQUENCES))))
    expected, _ = gradients(model, packed=True, rows=rows)
    family = packed_row(rows).where[:4].unique()  # Of the first family.

    def spoil(module, inputs, output):
        spoilt = output.clone()
        spoilt[:, family] = torch.nan
        return spoilt

    model.get_input_embeddings().register_forward_hook(spoil)
    found, _ = gradients(model, packed=True, rows=rows)
    assert found["logp"][:4][rows.mask[:4]].isnan().all()
    assert torch.equal(found["logp"][4:], expected["logp"][4:])


def test_a_family_shares_what_comes_before_its_first_difference_and_its_first_trained_token():
    shared = lambda *rows: families_of(rows)[0].shared  # noqa: E731
    assert shared(sequence([1, 2, 3], [0, 0, 1]), sequence([1, 2, 9, 9], [0, 0, 1, 1])) == 2
    assert (
        shared(sequence([1, 2, 3], [0, 0, 1]), sequence([1, 2, 3], [0, 1, 1])) == 1
    )  # Trained earlier in one.
    assert shared(sequence([1, 2, 3], [0, 0, 1]), sequence([1, 5, 3], [0, 0, 1])) == 1
    assert shared(sequence([1, 2, 3], [0, 0, 1]), sequence([4, 2, 3], [0, 0, 1])) == 0
    assert (
        shared(sequence([1, 2], [0, 0]), sequence([1, 2, 3, 4], [0, 0, 0, 1])) == 1
    )  # A row keeps one of its own.
    assert shared(sequence([1], [0]), sequence([1, 3], [0, 1])) == 0
    assert shared(sequence([1, 2, 3], [0, 0, 1])) == 0  # Nobody to share with.


@pytest.mark.parametrize("case", range(60))
def test_the_cut_holds_every_row_once_within_the_limit_and_gives_ranks_equally_many(case):
    random = np.random.default_rng(case)
    some = lambda least, most, **how: random.integers(least, most + 1, **how)  # noqa: E731
    sequences = [
        one
        for group in range(some(1, 6))
        for one in family(
            group, prompt=int(some(1, 9)), rests=some(1, 9, size=some(1, 5)).tolist(), seed=case
        )
    ]
    tokens_max, world_size, whole = int(some(1, 60)), int(some(1, 3)), bool(some(0, 1))
    lengths = [len(one.tokens) for one in sequences]
    families = families_of(sequences)
    ranks = cut_packed(families, lengths, tokens_max=tokens_max, world_size=world_size, whole=whole)
    assert len({len(rank) for rank in ranks}) == 1
    pieces = [piece for rank in ranks for piece in rank]
    rows = [row for piece in pieces for one in piece for row in one.rows]
    assert sorted(rows) == list(range(len(sequences)))
    for piece in pieces:
        tokens = sum(one.tokens(lengths) for one in piece)
        alone = len(piece) == 1 and (whole or len(piece[0].rows) == 1)
        assert tokens <= tokens_max or alone
        if not piece:
            continue
        places = [row for one in piece for row in one.rows]
        packed = packed_row(rows_of(sequences, places))
        assert packed.inputs["input_ids"].numel() == tokens
        batch = rows_of(sequences, places)
        for row, place in enumerate(places):  # Every row is found again, wherever its tokens stand.
            where = packed.where[row, : lengths[place]]
            assert packed.inputs["input_ids"][0, where].tolist() == sequences[place].tokens.tolist()
            assert packed.inputs["position_ids"][0, where].tolist() == list(range(lengths[place]))
            assert (
                batch.tokens.flatten()[packed.kept[where]].tolist()
                == sequences[place].tokens.tolist()
            )
    if whole:
        assert sorted(one.rows for piece in pieces for one in piece) == sorted(
            one.rows for one in families
        )


def test_rows_that_share_nothing_are_cut_by_their_tokens_without_padding():
    families = [Family((place,), 0) for place in range(5)]
    lengths = [10, 1, 9, 2, 30]
    rows = lambda pieces: [[row for one in piece for row in one.rows] for piece in pieces]  # noqa: E731
    assert rows(cut_packed(families, lengths, tokens_max=24, world_size=1)[0]) == [
        [1, 3, 2, 0],
        [4],
    ]


def test_a_family_that_is_too_large_is_parted_and_each_part_begins_with_all_that_is_shared():
    [one] = families_of(family(0, prompt=5, rests=[3, 3, 3, 3]))
    assert one.tokens([8] * 4) == 17
    assert one.parts([8] * 4, 11) == [Family((0, 1), 5), Family((2, 3), 5)]
    assert one.parts([8] * 4, 1) == [Family((row,), 5) for row in range(4)]
    assert cut_packed([one], [8] * 4, tokens_max=11, world_size=1, whole=True) == [[[one]]]


LENGTHS = [[14, 9, 17], [11, 20], [8, 30, 8, 12]]


def batch_of(trainer, **fields):
    return trajectory_batch(trainer.artifacts, LENGTHS, prompt=6, **fields)


def trained(directory, *, packing):
    """Scores of a batch, and the two steps taken on it with them."""
    trainer = Trainer(directory)
    trainer.create()
    trainer.load()
    options = {"packing": True} if packing else {}
    batch = trajectory_batch(trainer.artifacts, LENGTHS, prompt=6, updates=[[0, 2], [1]])
    args = {"batch": trainer.artifacts.put_json(batch), "micro_batch_tokens_max": 64, **options}
    scored = {}
    for column, reference in (("old_logp", None), ("ref_logp", str(directory / "model"))):
        trainer.call("score", version="v0", columns=[column], reference_path=reference, **args)
        scored[column] = trainer.io.blobs[0]
    column = {"kind": "token", "artifact": trainer.artifacts.put(scored["old_logp"])}
    batch["columns"]["old_logp"] = column
    steps = trainer.train(batch, between=("v0", "v1"), tokens_max=64, **options)["steps"]
    return steps, {name: msgpack.unpackb(blob)["values"] for name, blob in scored.items()}


def test_families_are_scored_and_trained_as_padded_rows_in_fewer_micro_batches(tmp_path):
    padded, scores = trained(tmp_path / "padded", packing=False)
    packed, found = trained(tmp_path / "packed", packing=True)
    for name, values in scores.items():
        for value, other in zip(values, found[name], strict=True):
            np.testing.assert_allclose(
                np.frombuffer(other, "<f4"), np.frombuffer(value, "<f4"), atol=1e-5
            )
    assert found["ref_logp"] == found["old_logp"]  # The same weights, by another model in memory.
    for step, other in zip(padded, packed, strict=True):
        assert other["loss"] == pytest.approx(step["loss"], rel=1e-5)
        assert other["grad_norm"] == pytest.approx(step["grad_norm"], rel=1e-5)
    assert sum(step["micro_batches"] for step in packed) < sum(
        step["micro_batches"] for step in padded
    )
