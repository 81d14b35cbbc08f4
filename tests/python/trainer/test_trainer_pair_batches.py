"""Preference batches become sequences in pairs, and micro-batches that never part a pair."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pytest

from holdfast_worker.operation import BadDataError
from holdfast_worker.prompts import encode_supervised
from holdfast_worker.trainer.batch import cut_pairs, read_sequences
from holdfast_worker.trainer.micro_batches import micro_batch
from holdfast_worker.trainer.model.create_model import CHAT_TEMPLATE, character_tokenizer
from trainer_harness import Artifacts, io_of, read_by_trainer


@pytest.fixture(scope="module")
def tokenizer():
    tokenizer = character_tokenizer()
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def preference_batch(pairs: list[tuple[Any, Any, Any, float]], **fields: Any) -> dict[str, Any]:
    rows = [
        {
            "row_id": f"row {place}",
            "prompt": prompt,
            "chosen": chosen,
            "rejected": rejected,
            "margin": margin,
        }
        for place, (prompt, chosen, rejected, margin) in enumerate(pairs)
    ]
    parts = {"kind": "preference", "pairs": rows, "columns": {}, "temperature": 1, "coef": {}}
    return {**parts, "updates": [list(range(len(rows)))], **fields}


CHAT = [{"role": "user", "content": "sort 321"}]
PAIRS = [
    ("sort 21 =", "12", "1", 0.5),
    (CHAT, "123", "12", 0.0),
    (
        CHAT,
        [{"role": "assistant", "content": "1"}, *CHAT, {"role": "assistant", "content": "2"}],
        "3",
        0.0,
    ),
]


def sequences_of(batch, tokenizer, artifacts=None):
    read = io_of(artifacts).read_artifact if artifacts else None
    return read_sequences(read_by_trainer(batch), read, tokenizer)


def test_both_sides_of_a_pair_have_the_prompts_tokens_as_supervised_rows_have_them(tokenizer):
    sequences = sequences_of(preference_batch(PAIRS), tokenizer)
    assert [sequence.group for sequence in sequences] == [0, 0, 1, 1, 2, 2]
    for place, (prompt, chosen, rejected, margin) in enumerate(PAIRS):
        both = sequences[2 * place : 2 * place + 2]
        for sequence, side in zip(both, (chosen, rejected)):
            tokens, mask = encode_supervised(tokenizer, prompt, side)
            assert sequence.tokens.tolist() == tokens
            assert sequence.mask.astype(int).tolist() == mask
            assert sequence.sequence_columns["margin"] == margin
        prompt_length = int(both[0].mask.argmax())
        assert both[0].tokens[:prompt_length].tolist() == both[1].tokens[:prompt_length].tolist()
        assert int(both[1].mask.argmax()) == prompt_length > 0


def test_columns_run_over_both_sides(tokenizer, tmp_path):
    artifacts = Artifacts(tmp_path)
    lengths = [
        len(sequence.tokens) for sequence in sequences_of(preference_batch(PAIRS[:2]), tokenizer)
    ]
    values = [np.full(length, place, "<f4") for place, length in enumerate(lengths)]
    artifact = artifacts.put(msgpack.packb({"values": [value.tobytes() for value in values]}))
    batch = preference_batch(
        PAIRS[:2], columns={"ref_logp": {"kind": "token", "artifact": artifact}}
    )
    sequences = sequences_of(batch, tokenizer, artifacts)
    assert [sequence.token_columns["ref_logp"][-1] for sequence in sequences] == [0, 1, 2, 3]
    batch["pairs"].pop()
    with pytest.raises(
        BadDataError, match="'ref_logp' because it has 4 values: the batch has 2 sequences"
    ):
        sequences_of(batch, tokenizer, artifacts)


def test_a_side_longer_than_the_model_is_refused_by_row_and_side_and_not_cut(tokenizer):
    long = preference_batch([("sort 21 =", "12", "1" * tokenizer.model_max_length, 0.0)])
    with pytest.raises(
        BadDataError,
        match=r"'row 0' because its rejected side has 522 tok.*.* room for 512.*Shorten",
    ):
        sequences_of(long, tokenizer)


@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("tokens_max", [1, 40, 4096])
def test_cut_pairs_parts_no_pair_and_gives_every_rank_equally_many(world_size, tokens_max):
    lengths = np.random.default_rng(world_size).integers(2, 30, 42).tolist()
    ranks = cut_pairs(lengths, tokens_max=tokens_max, world_size=world_size)
    pieces = [piece for rank in ranks for piece in rank if piece]
    assert sorted(place for piece in pieces for place in piece) == list(range(42))
    for piece in pieces:
        assert [place % 2 for place in piece] == [0, 1] * (len(piece) // 2)
        assert [place // 2 for place in piece[::2]] == [place // 2 for place in piece[1::2]]
        assert len(piece) == 2 or len(piece) * max(lengths[place] for place in piece) <= tokens_max
    assert len({len(rank) for rank in ranks}) == 1


def test_a_micro_batch_of_pairs_has_a_margin_for_each_pair_and_a_filler_of_one_masked_pair(
    tokenizer,
):
    sequences = sequences_of(preference_batch(PAIRS), tokenizer)
    part = micro_batch(sequences, [2, 3, 0, 1], columns={"margin"}, device="cpu", pairs=True)
    assert part.columns["margin"].tolist() == [0.0, 0.5]
    assert (part.sequences, part.groups) == ([2, 3, 0, 1], [1, 1, 0, 0])
    filler = micro_batch(sequences, [], columns={"margin"}, device="cpu", pairs=True)
    assert (filler.sequences, filler.groups, filler.mask.any().item()) == (
        [-1, -1],
        [-1, -1],
        False,
    )
    assert filler.columns["margin"].tolist() == [0.0]
