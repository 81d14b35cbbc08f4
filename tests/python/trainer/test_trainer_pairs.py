"""Learning from pairs, with the trainer's operations in this process: DPO and a reward model."""

from __future__ import annotations

from pathlib import Path

import msgpack
import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

from holdfast_worker.operation import BadDataError
from holdfast_worker.prompts import encode_supervised
from holdfast_worker.wire.types import ArtifactRef
from loss_expressions import comparison, preference
from test_trainer_pair_batches import preference_batch
from trainer_harness import Trainer

PAIRS = [
    ("sort 321 =", "123", "132", 0.0),
    ("sort 54 =", "45", "54", 0.25),
    ("sort 9081 =", "0189", "018", 1.0),
    ([{"role": "user", "content": "sort 77"}], "77", "7", 0.0),
    ("sort 1 =", "1", "11111111", 0.0),
]
LOSSES = {"dpo": (preference(), None), "reward_model": (comparison(), "score")}


def make(directory: Path, name: str) -> Trainer:
    trainer = Trainer(directory, head=LOSSES[name][1])
    trainer.create()
    trainer.load()
    return trainer


def with_reference(trainer: Trainer, batch: dict, reference: str | None) -> dict:
    """The batch with its ref_logp column, scored as the flow scores it."""
    ref = trainer.artifacts.put_json(batch)
    options = {"reference_path": reference, "micro_batch_tokens_max": 40}
    trainer.call("score", version=trainer.worker.held, batch=ref, columns=["ref_logp"], **options)
    column = {"kind": "token", "artifact": trainer.artifacts.put(trainer.io.blobs[0])}
    return {**batch, "columns": {"ref_logp": column}}


def ready(trainer: Trainer, name: str, pairs: list = PAIRS) -> dict:
    batch = preference_batch(pairs)
    return (
        with_reference(trainer, batch, str(trainer.directory / "model")) if name == "dpo" else batch
    )


def evaluate(trainer: Trainer, batch: dict, name: str, tokens_max: int = 4096) -> dict:
    return trainer.call(
        "evaluate",
        version=trainer.worker.held,
        batch=trainer.artifacts.put_json(batch),
        loss=trainer.artifacts.put_json(LOSSES[name][0]),
        micro_batch_tokens_max=tokens_max,
    )


@pytest.mark.parametrize("name", LOSSES)
def test_pairs_are_learned_and_every_cut_gives_the_same_gradient(tmp_path, name):
    trainer = make(tmp_path, name)
    batch = ready(trainer, name)
    loss = LOSSES[name][0]
    whole = trainer.train(batch, between=("v0", "v1"), loss=loss, tokens_max=4096)["steps"][0]
    trainer.load()
    single = trainer.train(batch, between=("v0", "v1"), loss=loss, tokens_max=1)["steps"][0]
    assert (whole["micro_batches"], single["micro_batches"]) == (1, len(PAIRS))
    assert single["loss"] == pytest.approx(whole["loss"], rel=1e-5)
    assert single["grad_norm"] == pytest.approx(whole["grad_norm"], rel=1e-4)
    first = evaluate(trainer, batch, name)
    for step in range(1, 15):
        trainer.train(batch, between=(f"v{step}", f"v{step + 1}"), loss=loss)
    last = evaluate(trainer, batch, name)
    assert last["loss"] < first["loss"]
    assert (last["metrics"]["reward/accuracy"], last["metrics"]["reward/margin"] > 0) == (1.0, True)


@pytest.mark.parametrize("name", LOSSES)
def test_evaluate_is_the_loss_of_a_step_that_is_not_taken(tmp_path, name):
    trainer = make(tmp_path, name)
    batch = ready(trainer, name)
    trainer.train(batch, between=("v0", "v1"), loss=LOSSES[name][0])
    before = trainer.call("publish", version="v1", dir=str(tmp_path / "a"))["digest"]
    results = [evaluate(trainer, batch, name, tokens_max) for tokens_max in (4096, 1)]
    assert trainer.call("publish", version="v1", dir=str(tmp_path / "b"))["digest"] == before
    step = trainer.train(batch, between=("v1", "v2"), loss=LOSSES[name][0], tokens_max=4096)[
        "steps"
    ][0]
    assert results[0] == {
        key: step[key] for key in ("loss", "n_tokens", "n_sequences", "micro_batches", "metrics")
    }
    assert results[1]["loss"] == pytest.approx(step["loss"], rel=1e-5)
    unread = {"sha256": "", "bytes": 0}
    refused = trainer.call(
        "evaluate", version="v9", batch=unread, loss=unread, micro_batch_tokens_max=1
    )
    assert refused == {"not_resident": "v2"}


def sums(model, tokenizer, prompt, side) -> torch.Tensor:
    """Log-probability of one side, computed with transformers alone."""
    tokens, mask = encode_supervised(tokenizer, prompt, side)
    with torch.no_grad():
        table = model(torch.tensor([tokens])).logits[0].log_softmax(-1)
    logp = table[:-1].gather(1, torch.tensor(tokens)[1:, None])[:, 0]
    return (logp * torch.tensor(mask[1:])).sum()


def test_the_preference_loss_is_that_of_the_two_models_that_transformers_open(tmp_path):
    trainer = make(tmp_path, "dpo")
    batch = ready(trainer, "dpo")
    trainer.train(batch, between=("v0", "v1"), loss=preference())
    published = trainer.call("publish", version="v1", dir=str(tmp_path / "out"))["dir"]
    tokenizer = AutoTokenizer.from_pretrained(published)
    models = [
        AutoModelForCausalLM.from_pretrained(path) for path in (published, tmp_path / "model")
    ]
    gains = [
        [
            sums(models[0], tokenizer, prompt, side) - sums(models[1], tokenizer, prompt, side)
            for side in sides
        ]
        for prompt, *sides, _ in PAIRS
    ]
    gaps = torch.stack([0.1 * (chosen - rejected) for chosen, rejected in gains])
    result = evaluate(trainer, batch, "dpo")
    assert result["loss"] == pytest.approx(-logsigmoid(gaps).mean().item(), rel=1e-4)
    assert result["metrics"]["reward/margin"] == pytest.approx(gaps.mean().item(), rel=1e-3)
    assert result["metrics"]["reward/accuracy"] == (gaps > 0).float().mean().item()


def test_a_reward_model_scores_the_last_token_and_is_exported_as_a_sequence_classifier(tmp_path):
    trainer = make(tmp_path, "reward_model")
    batch = ready(trainer, "reward_model")
    for step in range(3):
        trainer.train(batch, between=(f"v{step}", f"v{step + 1}"), loss=comparison())
    published = trainer.call("publish", version="v3", dir=str(tmp_path / "out"))["dir"]
    tokenizer = AutoTokenizer.from_pretrained(published)
    model = AutoModelForSequenceClassification.from_pretrained(published)
    assert model.config.num_labels == 1
    rewards = []
    for prompt, *sides, _ in PAIRS:
        for side in sides:
            tokens, _ = encode_supervised(tokenizer, prompt, side)
            with torch.no_grad():
                rewards.append(model(torch.tensor([tokens])).logits[0, 0].item())
    ref = trainer.artifacts.put_json(batch)
    options = {"reference_path": None, "micro_batch_tokens_max": 64}
    trainer.call("score", version="v3", batch=ref, columns=["score"], **options)
    scored = [
        np.frombuffer(value, "<f4") for value in msgpack.unpackb(trainer.io.blobs[0])["values"]
    ]
    assert [len(value) for value in scored] == [1] * (2 * len(PAIRS))
    assert np.concatenate(scored) == pytest.approx(rewards, abs=1e-5)
    gaps = torch.tensor(rewards).view(-1, 2).diff(dim=1)[:, 0].neg()
    margins = torch.tensor([margin for *_, margin in PAIRS])
    result = evaluate(trainer, batch, "reward_model")
    assert result["loss"] == pytest.approx(-logsigmoid(gaps - margins).mean().item(), rel=1e-4)
    assert result["metrics"]["reward/margin"] == pytest.approx(
        gaps.mean().item(), rel=1e-3, abs=1e-6
    )


def test_scoring_pairs_gives_each_side_its_log_probabilities_at_the_prompts_end_and_after(tmp_path):
    trainer = make(tmp_path, "dpo")
    batch = preference_batch(PAIRS)
    options = {"reference_path": str(tmp_path / "model"), "micro_batch_tokens_max": 40}
    columns = ["old_logp", "ref_logp"]
    trainer.call(
        "score", version="v0", batch=trainer.artifacts.put_json(batch), columns=columns, **options
    )
    both = [
        [np.frombuffer(value, "<f4") for value in msgpack.unpackb(blob)["values"]]
        for blob in trainer.io.blobs
    ]
    tokenizer = trainer.worker.source.tokenizer
    sides = [
        encode_supervised(tokenizer, prompt, side) for prompt, *sides, _ in PAIRS for side in sides
    ]
    for policy, reference, (tokens, mask) in zip(*both, sides, strict=True):
        assert len(policy) == len(tokens)
        # Nothing is trained yet: the reference is the same model.
        assert (policy == reference).all()
        assert (policy != 0).astype(int).tolist() == mask


def test_a_pair_batch_without_its_reference_column_is_refused_by_name(tmp_path):
    trainer = make(tmp_path, "dpo")
    with pytest.raises(BadDataError, match="reads 'ref_logp' and the batch has no such column"):
        trainer.train(preference_batch(PAIRS), between=("v0", "v1"), loss=preference())


def test_with_an_adapter_the_reference_is_the_model_itself_with_the_adapter_off(tmp_path):
    lora = {
        "rank": 4,
        "alpha": 8,
        "dropout": 0.0,
        "targets": "all_linear",
        "quantize": None,
        "publish": "merged",
    }
    trainer = Trainer(tmp_path, lora=lora)
    trainer.create()
    trainer.load()
    batch = with_reference(trainer, preference_batch(PAIRS), None)
    for step in range(5):
        trainer.train(batch, between=(f"v{step}", f"v{step + 1}"), loss=preference())
    trained = with_reference(trainer, preference_batch(PAIRS), None)
    assert (
        trained["columns"] == batch["columns"]
    )  # Bit for bit what it said before anything was learned.
    assert evaluate(trainer, batch, "dpo")["metrics"]["reward/margin"] > 0
    by_path = with_reference(trainer, preference_batch(PAIRS), str(tmp_path / "model"))
    values = [
        np.concatenate([np.frombuffer(value, "<f4") for value in msgpack.unpackb(read)["values"]])
        for read in (
            trainer.io.read_artifact(ArtifactRef(**one["columns"]["ref_logp"]["artifact"]))
            for one in (trained, by_path)
        )
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-5)
