"""Batches become sequences, and sequences micro-batches."""

from __future__ import annotations

import msgpack
import numpy as np
import pytest

from chat_templates import CALLING, tokenizer_for, tokenizer_of
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.batch import (
    SequenceData,
    cut,
    read_sequences,
    tokens_digest,
    updates_of,
)
from recorded_batches import sequences_of
from trainer_harness import Artifacts, read_by_trainer, trajectory_batch

PROMPT = [{"role": "user", "content": "hi"}]


@pytest.fixture
def artifacts(tmp_path):
    return Artifacts(tmp_path)


@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("tokens_max", [1, 20, 64, 4096])
def test_cut_holds_every_sequence_once_within_the_budget_and_equally_many_per_rank(
    world_size, tokens_max
):
    lengths = np.random.default_rng(world_size).integers(2, 30, 41).tolist()
    ranks = cut(lengths, tokens_max=tokens_max, world_size=world_size)
    pieces = [piece for rank in ranks for piece in rank if piece]
    assert sorted(place for piece in pieces for place in piece) == list(range(41))
    assert all(
        len(piece) == 1 or len(piece) * max(lengths[place] for place in piece) <= tokens_max
        for piece in pieces
    )
    assert len({len(rank) for rank in ranks}) == 1
    assert all(any(rank) for rank in ranks)


def test_cut_gives_one_micro_batch_where_all_fits_and_breaks_ties_by_place():
    assert cut([4, 4, 2], tokens_max=12, world_size=1) == [[[2, 0, 1]]]


def test_cut_fills_up_with_empty_micro_batches():
    assert cut([5, 5, 5], tokens_max=5, world_size=2) == [[[0], [2]], [[1], []]]


def with_rest(batch):
    """With what these tests do not vary."""
    return read_by_trainer({"temperature": 1, "coef": {}, "updates": [[0]], **batch})


def test_read_sequences_follows_the_batch_and_not_the_slab(artifacts):
    batch = trajectory_batch(artifacts, [[5, 6], [7, 8]])
    batch["groups"] = [
        {**batch["groups"][1], "samples": [1]},
        {**batch["groups"][0], "samples": [0, 1]},
    ]
    batch["columns"] = {"advantage": {"kind": "sequence", "values": [1, 2, 3]}}
    batch["staleness"] = [0, 1, 2]
    sequences = sequences_of(artifacts, batch)
    assert [len(sequence.tokens) for sequence in sequences] == [8, 5, 6]
    assert [sequence.group for sequence in sequences] == [0, 1, 1]
    assert [sequence.token_columns["advantage"].tolist()[-1] for sequence in sequences] == [1, 2, 3]
    assert [sequence.sequence_columns["staleness"] for sequence in sequences] == [0, 1, 2]
    assert sequences[1].mask.tolist() == [False, False, False, True, True]


def test_read_sequences_takes_token_columns_from_their_artifact(artifacts):
    batch = trajectory_batch(artifacts, [[4, 5]])
    values = [np.arange(4, dtype="<f4"), np.arange(5, dtype="<f4")]
    batch["columns"]["old_logp"] = {
        "kind": "token",
        "artifact": artifacts.put(msgpack.packb({"values": [value.tobytes() for value in values]})),
    }
    assert sequences_of(artifacts, batch)[1].token_columns["old_logp"].tolist() == [0, 1, 2, 3, 4]


def test_read_sequences_refuses_columns_of_another_batch(artifacts):
    batch = trajectory_batch(artifacts, [[4, 5]])
    batch["columns"]["advantage"]["values"].pop()
    with pytest.raises(
        BadDataError, match="'advantage' because it has 1 values: the batch has 2 sequences"
    ):
        sequences_of(artifacts, batch)


def test_read_sequences_refuses_a_slab_that_holds_another_draw(artifacts):
    batch = trajectory_batch(artifacts, [[4], [5]])
    batch["groups"][1]["draw"] = 7
    with pytest.raises(BadDataError, match="holds draw 1 at 1: the batch names draw 7"):
        sequences_of(artifacts, batch)


def test_updates_of_keep_batch_order_and_refuse_an_empty_step(artifacts):
    batch = trajectory_batch(artifacts, [[4], [5, 5], [6]], updates=[[2, 1], [0]])
    sequences = sequences_of(artifacts, batch)
    assert [update.sequences for update in updates_of(read_by_trainer(batch), sequences)] == [
        [1, 2, 3],
        [0],
    ]
    with pytest.raises(BadDataError, match="hold no sequence"):
        updates_of(read_by_trainer({**batch, "updates": [[]]}), sequences)


def test_updates_of_hold_no_masked_sequence_and_refuse_a_step_of_nothing_else(artifacts):
    batch = trajectory_batch(
        artifacts, [[4, 4], [5, 5], [6, 6]], updates=[[2, 0], [1]], masked=[1, 4]
    )
    sequences = sequences_of(artifacts, batch)
    assert len(sequences) == 6  # Columns have a number for each.
    assert [update.sequences for update in updates_of(read_by_trainer(batch), sequences)] == [
        [0, 5],
        [2, 3],
    ]
    with pytest.raises(BadDataError, match="hold no sequence to train"):
        updates_of(read_by_trainer({**batch, "masked": [2, 3]}), sequences)


@pytest.mark.parametrize(
    "batch",
    [
        {
            "kind": "supervised",
            "rows": [{"row_id": "a", "prompt": PROMPT, "completion": "yo", "columns": {}}],
        },
        {
            "kind": "preference",
            "pairs": [
                {"row_id": "a", "prompt": PROMPT, "chosen": "yo", "rejected": "yo", "margin": 0.0}
            ],
            "columns": {},
        },
    ],
    ids=["supervised", "preference"],
)
@pytest.mark.parametrize("thinks", [True, False])
def test_chats_are_taught_as_their_record_says_with_the_templates_arguments_and_end(batch, thinks):
    tokenizer = tokenizer_for("qwen3")
    tokenizer.model_max_length = 512
    chat = {"template_arguments": {"enable_thinking": thinks}}
    for sequence in read_sequences(with_rest({**batch, "chat": chat}), None, tokenizer):
        taught = tokenizer.decode(sequence.tokens[sequence.mask])
        assert taught == ("<think>\n\n</think>\n\n" if thinks else "") + "yo<|im_end|>"


@pytest.mark.parametrize(
    "batch",
    [
        {"kind": "supervised", "rows": [{"completion": "yo", "columns": {}}]},
        {
            "kind": "preference",
            "pairs": [{"chosen": "yo", "rejected": "no", "margin": 0.0}],
            "columns": {},
        },
    ],
    ids=["supervised", "preference"],
)
def test_the_tools_of_a_row_are_in_the_prompt_of_each_of_its_sequences(batch):
    tokenizer = tokenizer_of(CALLING, ("<|im_start|>", "<|im_end|>"), "<|im_end|>")
    tokenizer.model_max_length = 512
    common = {"row_id": "a", "prompt": PROMPT, "tools": '[{"name": "f"}]'}
    key = "rows" if "rows" in batch else "pairs"
    rows = [{**common, **row} for row in batch[key]]
    chat = {"template_arguments": {}}
    sequences = read_sequences(with_rest({**batch, key: rows, "chat": chat}), None, tokenizer)
    assert len(sequences) == (1 if key == "rows" else 2)
    for sequence in sequences:
        assert common["tools"] in tokenizer.decode(sequence.tokens[~sequence.mask])


def test_tokens_digest_is_of_the_tokens_their_borders_and_what_is_taught():
    def of(*sequences):
        return tokens_digest(
            [
                SequenceData(np.asarray(tokens, np.int32), np.asarray(mask, bool), 0)
                for tokens, mask in sequences
            ]
        )

    whole = of(([1, 2, 3], [0, 1, 1]), ([4], [1]))
    assert whole == of(([1, 2, 3], [0, 1, 1]), ([4], [1]))
    assert (
        len({whole, of(([1, 2], [0, 1]), ([3, 4], [1, 1])), of(([1, 2, 3], [0, 0, 1]), ([4], [1]))})
        == 3
    )
