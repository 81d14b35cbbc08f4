"""A trainer's operations: what it holds, refuses and says at boot."""

from __future__ import annotations

import json
import weakref

import msgpack
import numpy as np
import pytest
import torch

from holdfast_worker.operation import BadDataError, OperationIO
from holdfast_worker.trainer.model.model_source import ModelSource
from torch_trainers import LENGTHS, published
from trainer_harness import (
    Trainer,
    trajectory_batch,
)


def test_train_answers_not_resident_and_changes_nothing(trainer):
    before = published(trainer, "v0")["digest"]
    batch = trajectory_batch(trainer.artifacts, LENGTHS)
    assert trainer.train(batch, between=("v7", "v8")) == {"not_resident": "v0"}
    assert trainer.call("publish", version="v7", dir=str(trainer.directory / "no")) == {
        "not_resident": "v0"
    }
    assert trainer.call("save", version="v7", dir=str(trainer.directory / "no")) == {
        "not_resident": "v0"
    }
    assert published(trainer, "v0")["digest"] == before


def test_train_answers_again_what_was_lost_on_the_way(trainer):
    batch = trajectory_batch(trainer.artifacts, LENGTHS)
    first = trainer.train(batch, between=("v0", "v1"))
    digest = published(trainer, "v1")["digest"]
    assert trainer.train(batch, between=("v0", "v1")) == first
    assert published(trainer, "v1")["digest"] == digest


def test_load_frees_the_old_model_before_the_new_one_comes(trainer):
    trainer.load()
    old = [weakref.ref(parameter) for parameter in trainer.worker.engine.parameters]
    open_model, alive = ModelSource.open_model, []

    def counting(source, dtype, **options):
        alive.append(sum(reference() is not None for reference in old))
        return open_model(source, dtype, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModelSource, "open_model", counting)
        trainer.load("v1")
    assert alive == [0]


def test_inspect_model_says_what_a_directory_lacks(trainer, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadDataError, match="lacks config.json"):
        trainer.call("inspect_model", dir=str(tmp_path / "empty"))


def test_boot_tells_device_packages_and_numerics(trainer):
    numerics = trainer.load()["numerics"]
    assert (numerics["engine"], numerics["zero"], numerics["world_size"]) == ("torch", 0, 1)
    assert (numerics["dtype"], numerics["threads"]) == ("float32", 1)
    assert numerics["packages"]["torch"] == torch.__version__
    assert json.loads(json.dumps(numerics)) == numerics


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"engine": "jax"}, "engine is wrong: Invalid enum value 'jax'"),
        ({"dtype": "float8"}, "dtype is wrong: Invalid enum value 'float8'"),
        ({"head": "reward"}, "head is wrong: Invalid enum value 'reward'"),
    ],
)
def test_boot_refuses_what_it_cannot_run(tmp_path, spec, text):
    with pytest.raises(BadDataError, match=text):
        Trainer(tmp_path, **spec)


@pytest.mark.parametrize("op", ["train", "score"])
def test_without_room_the_engine_is_told_the_cut_and_a_smaller_one_gives_the_same(
    trainer, monkeypatch, op
):
    """The device is a stub here: its room is counted in tokens of a forward."""
    operations = trainer.worker.trainer
    batch = trajectory_batch(trainer.artifacts, LENGTHS)
    rows = {"version": "v0", "columns": ["old_logp"], "reference_path": None}
    score = {**rows, "batch": trainer.artifacts.put_json(batch)}

    def run(tokens_max):
        if op == "train":
            step = trainer.train(batch, between=("v0", "v1"), tokens_max=tokens_max)["steps"][0]
            return [step["loss"], step["grad_norm"]]
        trainer.call("score", **score, micro_batch_tokens_max=tokens_max)
        return [
            float(x)
            for value in msgpack.unpackb(trainer.io.blobs[0])["values"]
            for x in np.frombuffer(value, "<f4")
        ]

    expected = run(4096)
    forward = operations.forward

    def small(model, part, **options):
        if part.tokens.numel() > 40:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return forward(model, part, **options)

    monkeypatch.setattr(operations, "forward", small)
    progress = []
    monkeypatch.setattr(
        OperationIO, "progress", lambda io, phase, *_, **metrics: progress.append((phase, metrics))
    )
    trainer.load()
    with pytest.raises(torch.OutOfMemoryError):
        run(4096)
    assert progress[-1] == ("no_room", {"longest_tokens": 16, "micro_batch_tokens": 12 * 16})
    trainer.load()
    assert run(40) == pytest.approx(expected, rel=1e-4, abs=1e-6)
