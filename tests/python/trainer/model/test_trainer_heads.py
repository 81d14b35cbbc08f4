"""
Value models and reward models: what their numbers are, what their directories hold, and their bits.
"""

from __future__ import annotations

import json

import msgpack
import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from holdfast_worker.operation import BadDataError
from holdfast_worker.rewards.reward_model import RewardModel
from holdfast_worker.trainer.model.heads import at_last, values_before
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import ArtifactRef, RewardModelSettings
from own_model import change
from trainer_harness import OPTIMIZER, Trainer, trajectory_batch

LENGTHS = [[16, 9, 12, 7]] * 5
TOKENS_MAX = 100  # An odd number of micro-batches, so that one of two ranks runs a filler.


def squared_error(live: str, kind: str) -> dict:
    """The sum over the step of (live - returns)^2, or of a sequence's score squared, by a count."""
    count = {"token": "n_tokens", "sequence": "n_sequences"}[kind]
    target = {"op": "input", "kind": "token", "name": "returns"}
    if kind == "sequence":
        target = {"op": "scalar", "kind": "step", "value": 1.0}
    return {
        "version": 1,
        "inputs": sorted([live, count, *(["returns"] if kind == "token" else [])]),
        "nodes": [
            {"op": "input", "kind": kind, "name": live},
            target,
            {"op": "sub", "kind": kind, "args": [0, 1]},
            {"op": "square", "kind": kind, "args": [2]},
            {"op": "stepSum", "kind": "step", "args": [3]},
            {"op": "input", "kind": "step", "name": count},
            {"op": "div", "kind": "step", "args": [4, 5]},
        ],
        "loss": 6,
        "metrics": {},
    }


LOSSES = {"value": squared_error("values", "token"), "score": squared_error("score", "sequence")}
COLUMNS = {"value": ["values", "bootstrap"], "score": ["score"]}
CLASSES = {"value": AutoModelForTokenClassification, "score": AutoModelForSequenceClassification}


def value_batch(artifacts, lengths=LENGTHS, *, seed=0):
    batch = trajectory_batch(artifacts, lengths, seed=seed)
    batch["columns"]["returns"] = batch["columns"]["advantage"]
    return batch


def opened(tmp_path, head, **spec):
    trainer = Trainer(tmp_path, head=head, **spec)
    trainer.create()
    trainer.load()
    return trainer


def train(trainer, head, first, last):
    answers = [
        trainer.train(
            value_batch(trainer.artifacts, seed=k),
            between=(f"v{k}", f"v{k + 1}"),
            loss=LOSSES[head],
        )
        for k in range(first, last)
    ]
    return [step for answer in answers for step in answer["steps"]]


def score(trainer, head, version, batch, *, tokens_max=TOKENS_MAX):
    """[columns][N] arrays."""
    trainer.call(
        "score",
        version=version,
        batch=trainer.artifacts.put_json(batch),
        columns=COLUMNS[head],
        reference_path=None,
        micro_batch_tokens_max=tokens_max,
    )
    return [
        [np.frombuffer(one, "<f4") for one in msgpack.unpackb(blob)["values"]]
        for blob in trainer.io.blobs
    ]


def trajectories(trainer, batch):
    slab = msgpack.unpackb(trainer.io.read_artifact(ArtifactRef(**batch["groups"][0]["slab"])))
    return [trajectory for group in slab["groups"] for trajectory in group["trajectories"]]


@pytest.mark.parametrize("head", ["value", "score"])
def test_a_head_that_the_model_does_not_have_says_zero_and_learns(tmp_path, head):
    trainer = opened(tmp_path, head)
    batch = value_batch(trainer.artifacts)
    assert all(not one.any() for column in score(trainer, head, "v0", batch) for one in column)
    steps = train(trainer, head, 0, 3)
    assert all(one.any() for column in score(trainer, head, "v3", batch) for one in column)
    assert steps[0]["grad_norm"] > 0 and steps[2]["loss"] != steps[0]["loss"]


def test_values_stand_before_their_token_and_the_bootstrap_after_the_last(tmp_path):
    trainer = opened(tmp_path, "value")
    train(trainer, "value", 0, 2)
    batch = value_batch(trainer.artifacts, [[9, 5], [7]])
    values, bootstrap = score(trainer, "value", "v2", batch, tokens_max=18)
    directory = trainer.call("publish", version="v2", dir=str(tmp_path / "out"))["dir"]
    model = AutoModelForTokenClassification.from_pretrained(directory)
    assert model.num_labels == 1
    for trajectory, before, last in zip(
        trajectories(trainer, batch), values, bootstrap, strict=True
    ):
        tokens = torch.tensor(np.frombuffer(trajectory["tokens"], "<i4").astype(np.int64))
        mask = np.frombuffer(trajectory["action_mask"], np.uint8)
        with torch.no_grad():
            after = model(tokens[None]).logits[0, :, 0].numpy()
        assert before == pytest.approx(np.concatenate([[0.0], after[:-1]]) * mask, abs=1e-6)
        assert last == pytest.approx(after[-1:], abs=1e-6)


def test_a_reward_model_is_a_sequence_classifier_of_the_last_token(tmp_path):
    trainer = opened(tmp_path, "score")
    train(trainer, "score", 0, 2)
    batch = value_batch(trainer.artifacts, [[9, 5], [7]])
    (scores,) = score(trainer, "score", "v2", batch, tokens_max=18)
    directory = trainer.call("publish", version="v2", dir=str(tmp_path / "out"))["dir"]
    model = AutoModelForSequenceClassification.from_pretrained(directory)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["architectures"], model.num_labels) == (["Qwen2ForSequenceClassification"], 1)
    for trajectory, ours in zip(trajectories(trainer, batch), scores, strict=True):
        tokens = torch.tensor(np.frombuffer(trajectory["tokens"], "<i4").astype(np.int64))
        with torch.no_grad():
            assert ours == pytest.approx(model(tokens[None]).logits[0].numpy(), abs=1e-6)


@pytest.mark.parametrize("head", ["value", "score"])
def test_a_published_head_is_opened_again_and_not_made_anew(tmp_path, head):
    trainer = opened(tmp_path, head)
    train(trainer, head, 0, 2)
    published = trainer.call("publish", version="v2", dir=str(tmp_path / "out"))
    assert CLASSES[head].from_pretrained(published["dir"]).score.weight.any()
    trainer.call(
        "load", version="w0", model_path=published["dir"], optimizer=OPTIMIZER, checkpoint=None
    )
    assert (
        trainer.call("publish", version="w0", dir=str(tmp_path / "again"))["digest"]
        == published["digest"]
    )


@pytest.mark.parametrize("head", ["value", "score"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_training_from_a_checkpoint_gives_the_bits_of_training_on(tmp_path, head, dtype):
    trainer = opened(tmp_path, head, dtype=dtype)
    train(trainer, head, 0, 2)
    checkpoint = trainer.call("save", version="v2", dir=str(tmp_path / "checkpoint"))
    expected = train(trainer, head, 2, 4)
    digest = trainer.call("publish", version="v4", dir=str(tmp_path / "out"))["digest"]
    again = Trainer(tmp_path, head=head, dtype=dtype)
    again.load("v2", checkpoint)
    assert train(again, head, 2, 4) == expected
    assert again.call("publish", version="v4", dir=str(tmp_path / "again"))["digest"] == digest
    redone = opened(tmp_path, head, dtype=dtype)
    assert train(redone, head, 0, 4)[2:] == expected
    assert redone.call("publish", version="v4", dir=str(tmp_path / "redone"))["digest"] == digest


def test_a_bfloat16_head_says_float32(tmp_path):
    trainer = opened(tmp_path, "value", dtype="bfloat16")
    train(trainer, "value", 0, 2)
    values, _ = score(trainer, "value", "v2", value_batch(trainer.artifacts))
    said = torch.from_numpy(np.concatenate(values))
    assert (said.bfloat16().float() != said).any()


def test_every_cut_gives_the_same_gradient(tmp_path):
    norms = []
    for tokens_max in (16, 64, 1000):
        trainer = opened(tmp_path, "value")
        train(trainer, "value", 0, 1)
        batch = value_batch(trainer.artifacts, seed=1)
        answer = trainer.train(
            batch, between=("v1", "v2"), loss=LOSSES["value"], tokens_max=tokens_max
        )
        norms.append(answer["steps"][0]["grad_norm"])
    assert norms == pytest.approx([norms[0]] * 3, rel=1e-6)


def test_a_model_answers_only_the_columns_of_its_head(tmp_path):
    trainer = opened(tmp_path, "value")
    batch = trainer.artifacts.put_json(value_batch(trainer.artifacts))
    arguments = {
        "version": "v0",
        "batch": batch,
        "reference_path": None,
        "micro_batch_tokens_max": 64,
    }
    with pytest.raises(
        BadDataError, match="Cannot score old_logp with a model whose head is value"
    ):
        trainer.call("score", columns=["old_logp"], **arguments)


def test_at_last_and_values_before_on_rows_of_unequal_length():
    after = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert values_before(after).tolist() == [[0.0, 1.0, 2.0], [0.0, 4.0, 5.0]]
    assert at_last(after, torch.tensor([[False, True, False], [True, True, True]])).tolist() == [
        2.0,
        6.0,
    ]


SNIPPET = "Name colour number {}. Blue, shade {}."


def pages_scores(directory, texts):
    """As docs/preference.md reads an exported reward model."""
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForSequenceClassification.from_pretrained(directory).eval()

    def score(text):
        tokens = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
        with torch.no_grad():
            return model(torch.tensor([tokens])).logits[0, 0].item()

    return model.config.pad_token_id, [score(text) for text in texts]


def exported(tmp_path, pad, template=None):
    """A reward model of a base whose config.json and tokenizer fill rows with `pad`."""
    trainer = Trainer(tmp_path, head="score")
    trainer.create()
    base = tmp_path / "model"
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.pad_token = pad
    if template is not None:
        tokenizer.chat_template = template
    tokenizer.save_pretrained(base)
    change(base, pad_token_id=tokenizer.pad_token_id)
    trainer.load()
    train(trainer, "score", 0, 2)
    trainer.call("publish", version="v2", dir=str(tmp_path / "out"))
    return tmp_path / "out"


@pytest.mark.parametrize(("pad", "kept"), [("<eos>", None), ("<pad>", 0)])
def test_the_page_s_snippet_reads_the_score_that_was_trained(tmp_path, pad, kept):
    directory = exported(tmp_path, pad)
    texts = [SNIPPET.format(n, n) for n in range(4)]
    found, theirs = pages_scores(directory, texts)
    assert found == kept
    settings = {"path": str(directory), "dtype": "float32", "device": "cpu", "threads": 1}
    scores = RewardModel(decode(RewardModelSettings, {**settings, **REST})).score(
        [{"id": text, "prompt": text[:22], "completion": text[22:]} for text in texts]
    )
    assert theirs == pytest.approx([one["score"] for one in scores], abs=1e-6)
    assert len(set(theirs)) == 4


REST = {"turn_end": "template", "template_arguments": {}, "batch_tokens_max": 1024}


@pytest.mark.parametrize(("pad", "end"), [("<unk>", "'<unk>'"), ("<eos>", "eos_token")])
def test_a_token_that_ends_a_turn_by_the_template_fills_no_rows(tmp_path, pad, end):
    template = "{% for m in messages %}{{ m['content'] + " + end + " }}{% endfor %}"
    config = (exported(tmp_path, pad, template) / "config.json").read_text()
    assert json.loads(config)["pad_token_id"] is None
