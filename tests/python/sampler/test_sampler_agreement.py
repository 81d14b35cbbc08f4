"""Publications that the sampler compares with what the trainer itself says of fixed tokens."""

import shutil

import numpy as np
import pytest
from msgspec.structs import replace

import sampler_fixtures as fixtures
from holdfast_worker import model_opening
from holdfast_worker.operation import BadDataError
from holdfast_worker.sampler.publication import (
    compare_with_trainer,
    probe_sequences,
    tolerance_of,
)
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import Publication
from trainer_harness import OPTIMIZER, Trainer

RECIPES = ["tiny_qwen", "tiny_qwen_untied"]


@pytest.fixture(scope="module", params=RECIPES)
def model(request, tmp_path_factory):
    return fixtures.make_model(tmp_path_factory.mktemp(request.param) / "tiny", request.param)


def with_probe(worker, publication, *, off=0.0):
    """The publication with what a trainer would say of fixed tokens, `off` from the sampler's."""
    (tokens,) = probe_sequences(worker.engine.vocabulary, worker.engine.length_max)[:1]
    logp = worker.engine.cold_probe(publication["dir"], [tokens])
    alternating = off * (-1.0) ** np.arange(len(logp))  # The mean of the log-probabilities stays.
    return {**publication, "probe": {"tokens": tokens, "logp": (logp + alternating).tolist()}}


@pytest.mark.parametrize(("dtype", "most"), [("float32", 0.05), ("bfloat16", 0.5)])
def test_load_is_refused_when_the_trainer_computes_a_different_model(model, tmp_path, dtype, most):
    worker = fixtures.make_worker(dtype=dtype)
    first = fixtures.publish(model, "v1")
    fixtures.load(worker, model, first)
    shutil.copytree(model, tmp_path / "tiny")
    second = fixtures.publish_changed(tmp_path / "tiny", "v2", names=None, seed=2)
    says = rf"sampler and trainer compute different models.*differ by .* more than {most}\. Fix"
    with pytest.raises(BadDataError, match=says):
        fixtures.load(worker, model, with_probe(worker, second, off=most * 1.1))
    assert worker.version is None
    assert (
        fixtures.load(worker, model, with_probe(worker, second, off=most * 0.9))["version"] == "v2"
    )


def test_load_compares_nothing_without_a_probe_or_with_quantized_weights(model):
    worker = fixtures.make_worker()
    publication = fixtures.publish(model, "v1")
    fixtures.load(worker, model, publication)
    sent = decode(Publication, publication)
    compare_with_trainer(worker.engine, sent, tolerance=0.05)
    wrong = decode(Publication, with_probe(worker, publication, off=9))
    compare_with_trainer(worker.engine, wrong, tolerance=None)
    assert tolerance_of(worker.spec, sent) == 0.05
    quantized = replace(worker.spec, vllm={"quantization": "fp8"})
    assert tolerance_of(quantized, sent) is None
    halves = replace(worker.spec, vllm={"dtype": "bfloat16"})
    assert tolerance_of(halves, sent) == 0.5
    tensors = [replace(entry, dtype="BF16") for entry in sent.tensors]
    assert tolerance_of(worker.spec, replace(sent, tensors=tensors)) == 0.5


def test_a_trainer_s_publication_is_compared_on_as_many_tokens_as_the_sampler_takes(
    model, tmp_path
):
    trainer = Trainer(tmp_path, dropout=0.5)
    arguments = {"version": "v", "model_path": str(model), "optimizer": OPTIMIZER}
    trainer.call("load", **arguments, checkpoint=None)
    publication = trainer.call("publish", version="v", dir=str(tmp_path / "published"))
    probe = publication["probe"]
    assert (len(probe["tokens"]), len(probe["logp"])) == (32, 31)
    worker = fixtures.make_worker(max_model_len=20)
    fixtures.load(worker, model, publication)
    sampler_logp = worker.engine.probe([probe["tokens"][:19]])
    assert np.abs(sampler_logp - probe["logp"][:18]).max() < 1e-5
    assert trainer.worker.engine.module.training


@pytest.mark.parametrize("head", ["value", "score"])
def test_a_model_without_a_vocabulary_is_published_without_a_probe(model, tmp_path, head):
    trainer = Trainer(tmp_path, head=head)
    arguments = {"version": "v", "model_path": str(model), "optimizer": OPTIMIZER}
    trainer.call("load", **arguments, checkpoint=None)
    assert "probe" not in trainer.call("publish", version="v", dir=str(tmp_path / "published"))


def test_a_head_that_only_the_trainer_uses_is_seen_without_the_check_of_the_model(
    tmp_path, monkeypatch
):
    import torch
    from safetensors.torch import load_file, save_file

    tied = fixtures.make_model(tmp_path / "tiny")
    tensors = load_file(tied / fixtures.WEIGHTS_NAME)
    embeddings = tensors["model.embed_tokens.weight"]
    noise = torch.randn(embeddings.shape, generator=torch.Generator().manual_seed(1))
    tensors["lm_head.weight"] = embeddings + 0.05 * noise
    save_file(tensors, tied / fixtures.WEIGHTS_NAME, metadata={"format": "pt"})
    monkeypatch.setattr(model_opening, "_check_tied", lambda directory, model: None)
    trainer = Trainer(tmp_path)
    arguments = {"version": "v", "model_path": str(tied), "optimizer": OPTIMIZER}
    trainer.call("load", **arguments, checkpoint=None)
    publication = trainer.call("publish", version="v", dir=str(tmp_path / "published"))
    with pytest.raises(BadDataError, match="sampler and trainer compute different models"):
        fixtures.load(fixtures.make_worker(), tied, publication)
