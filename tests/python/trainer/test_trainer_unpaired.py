"""Learning from labelled completions, with the trainer's operations in this process: KTO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from holdfast_worker.operation import BadDataError
from holdfast_worker.prompts import encode_supervised
from holdfast_worker.trainer.batch import read_sequences
from holdfast_worker.trainer.model.create_model import CHAT_TEMPLATE, character_tokenizer
from loss_expressions import labelled
from test_trainer_pairs import with_reference
from trainer_harness import Trainer, read_by_trainer

CHAT = [{"role": "user", "content": "sort 77"}]
ROWS = [
    ("sort 321 =", "123", True),
    ("sort 54 =", "54", False),
    ("sort 9081 =", "0189", True),
    (CHAT, "7", False),
    ("sort 1 =", "11111111", False),
]
MISMATCHED = [1, 2, 3, 4, 0]


def unpaired_batch(rows: list[Any], mismatched: list[int] | None, **fields: Any) -> dict[str, Any]:
    completions = [
        {"row_id": f"row {place}", "prompt": prompt, "completion": completion, "label": label}
        for place, (prompt, completion, label) in enumerate(rows)
    ]
    parts = {"columns": {}, "temperature": 1, "coef": {}, "updates": [list(range(len(rows)))]}
    found = {} if mismatched is None else {"mismatched": mismatched}
    return {"kind": "unpaired", "completions": completions, **found, **parts, **fields}


@pytest.fixture(scope="module")
def tokenizer():
    tokenizer = character_tokenizer()
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def sequences_of(batch, tokenizer):
    return read_sequences(read_by_trainer(batch), None, tokenizer)


def test_each_completion_is_followed_by_the_mismatched_one_behind_the_same_prompt(tokenizer):
    sequences = sequences_of(unpaired_batch(ROWS, MISMATCHED), tokenizer)
    assert [sequence.group for sequence in sequences] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    labels = [sequence.sequence_columns["label"] for sequence in sequences]
    assert labels == [1, 0, -1, 0, 1, 0, -1, 0, -1, 0]
    encoded = [encode_supervised(tokenizer, *row[:2]) for row in ROWS]
    for place, other in enumerate(MISMATCHED):
        matched, mismatched = sequences[2 * place : 2 * place + 2]
        tokens, mask = encoded[place]
        assert (matched.tokens.tolist(), matched.mask.astype(int).tolist()) == (tokens, mask)
        prompt = tokens[: mask.index(1)]
        others, other_mask = encoded[other]
        answer = others[other_mask.index(1) :]
        assert mismatched.tokens.tolist() == prompt + answer
        assert mismatched.mask.astype(int).tolist() == [0] * len(prompt) + [1] * len(answer)


def test_without_mismatched_completions_there_is_one_sequence_each(tokenizer):
    sequences = sequences_of(unpaired_batch(ROWS, None), tokenizer)
    assert [sequence.sequence_columns["label"] for sequence in sequences] == [1, -1, 1, -1, -1]


def test_a_completion_longer_than_the_model_is_refused_and_a_mismatched_one_is_cut(tokenizer):
    room = tokenizer.model_max_length
    long = [("a" * (room - 20), "1", True), ("b", "1" * (room - 20), False)]
    sequences = sequences_of(unpaired_batch(long, [1, 0]), tokenizer)
    assert len(sequences[1].tokens) == len(sequences[1].mask) == room
    assert sequences[1].mask[-1]
    longer = [("a", "1" * room, True), long[1]]
    with pytest.raises(
        BadDataError, match=r"'row 0' because its completion has 514 tokens.* room for 512.*Shorten"
    ):
        sequences_of(unpaired_batch(longer, [1, 0]), tokenizer)


def make(directory: Path, **spec: Any) -> Trainer:
    trainer = Trainer(directory, **spec)
    trainer.create()
    trainer.load()
    return trainer


def evaluate(trainer: Trainer, batch: dict, **options: Any) -> dict:
    return trainer.call(
        "evaluate",
        version=trainer.worker.held,
        batch=trainer.artifacts.put_json(batch),
        loss=trainer.artifacts.put_json(labelled()),
        **{"micro_batch_tokens_max": 4096, **options},
    )


def test_labels_are_learned_and_every_cut_gives_the_same_gradient_and_kl(tmp_path):
    trainer = make(tmp_path)
    reference = str(trainer.directory / "model")
    batch = with_reference(trainer, unpaired_batch(ROWS, MISMATCHED), reference)
    steps = []
    for tokens_max in (1, 4096):
        trainer.load()
        result = trainer.train(batch, between=("v0", "v1"), loss=labelled(), tokens_max=tokens_max)
        steps.append(result["steps"][0])
    assert steps[0]["grad_norm"] == pytest.approx(steps[1]["grad_norm"], rel=1e-4)
    for step in range(1, 4):  # Away from the reference, where every reward and the KL are 0.
        trainer.train(batch, between=(f"v{step}", f"v{step + 1}"), loss=labelled())
    results = [evaluate(trainer, batch, micro_batch_tokens_max=size) for size in (4096, 1)]
    assert [one["micro_batches"] for one in results] == [1, 2 * len(ROWS)]
    assert results[1]["loss"] == pytest.approx(results[0]["loss"], rel=1e-5)
    assert results[1]["metrics"]["policy/kl_ref"] == pytest.approx(
        results[0]["metrics"]["policy/kl_ref"], abs=1e-5
    )
    packed = evaluate(trainer, batch, packing=True)
    assert packed["loss"] == pytest.approx(results[0]["loss"], rel=1e-5)
    first = results[0]
    for step in range(4, 15):
        trainer.train(batch, between=(f"v{step}", f"v{step + 1}"), loss=labelled())
    last = evaluate(trainer, batch)
    assert last["loss"] < first["loss"]
    assert last["metrics"]["reward/accuracy"] >= 0.8


def test_the_loss_and_the_kl_are_those_of_the_two_models_that_transformers_open(tmp_path):
    trainer = make(tmp_path)
    reference = str(tmp_path / "model")
    batch = with_reference(trainer, unpaired_batch(ROWS, MISMATCHED), reference)
    for step in range(4):
        trainer.train(batch, between=(f"v{step}", f"v{step + 1}"), loss=labelled())
    published = trainer.call("publish", version="v4", dir=str(tmp_path / "out"))["dir"]
    tokenizer = AutoTokenizer.from_pretrained(published)
    models = [AutoModelForCausalLM.from_pretrained(path) for path in (published, reference)]

    def gain(prompt: Any, completion: Any) -> float:
        tokens, mask = encode_supervised(tokenizer, prompt, completion)
        sums = []
        for model in models:
            with torch.no_grad():
                table = model(torch.tensor([tokens])).logits[0].log_softmax(-1)
            logp = table[:-1].gather(1, torch.tensor(tokens)[1:, None])[:, 0]
            sums.append((logp * torch.tensor(mask[1:])).sum().item())
        return sums[0] - sums[1]

    gains = np.array([gain(prompt, completion) for prompt, completion, _ in ROWS])
    others = [gain(row[0], ROWS[other][1]) for row, other in zip(ROWS, MISMATCHED)]
    kl = max(float(np.mean(others)), 0.0)
    side = np.where([label for *_, label in ROWS], gains - kl, kl - gains)
    result = evaluate(trainer, batch)
    assert result["metrics"]["policy/kl_ref"] == pytest.approx(kl, rel=1e-3, abs=1e-5)
    assert result["loss"] == pytest.approx(
        float((1 - 1 / (1 + np.exp(-0.1 * side))).mean()), rel=1e-4
    )
    assert result["metrics"]["reward/accuracy"] == (side > 0).mean()
