"""The moving average of the weights: what it is, and that a checkpoint loses no bit of it."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from safetensors.torch import load_file, save_file

from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.moving_average import STATE_NAME
from torch_trainers import published, steps
from trainer_harness import Trainer

DECAY = 0.75
VERSIONS = ["v0", "v1", "v2", "v3"]
LORA = {
    "rank": 4,
    "alpha": 8,
    "dropout": 0,
    "targets": "all_linear",
    "quantize": None,
    "publish": "merged",
}


def averaging(directory, **spec):
    trainer = Trainer(directory, ema_decay=DECAY, **spec)
    trainer.create()
    trainer.load()
    return trainer


def average_of(trainer, version, name):
    directory = str(trainer.directory / name)
    return trainer.call("publish", version=version, dir=directory, average=True)


def weights_of(directory, *, file="model.safetensors"):
    return {name: tensor.float() for name, tensor in load_file(directory / file).items()}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_average_decays_with_every_step_from_the_first_weights(tmp_path, dtype):
    trainer = averaging(tmp_path, dtype=dtype)
    published(trainer, "v0", "v0")
    expected = weights_of(tmp_path / "v0")
    for before, after in pairwise(VERSIONS):
        assert len(steps(trainer, [before, after])) == 1
        published(trainer, after, after)
        new = weights_of(tmp_path / after)
        expected = {name: DECAY * old + (1 - DECAY) * new[name] for name, old in expected.items()}
    average_of(trainer, "v3", "average")
    found = weights_of(tmp_path / "average")
    assert found.keys() == expected.keys()
    limit = 1e-6 if dtype == "float32" else 2**-8  # What is published is rounded.
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=limit, atol=1e-7)
    assert any(not torch.equal(found[name], new[name]) for name in found)
    # The state is not rounded.
    trainer.call("save", version="v3", dir=str(tmp_path / "checkpoint"))
    state = load_file(tmp_path / "checkpoint" / "state" / STATE_NAME)
    for name, tensor in expected.items():
        torch.testing.assert_close(state[name], tensor, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("spec", [{}, {"lora": LORA}], ids=["whole", "lora"])
def test_a_checkpoint_holds_the_average_and_continues_it_bit_for_bit(tmp_path, spec):
    trainer = averaging(tmp_path, **spec)
    steps(trainer, ["v0", "v1", "v2"])
    checkpoint = trainer.call("save", version="v2", dir=str(tmp_path / "checkpoint"))
    paths = {file["path"] for file in checkpoint["files"]}
    weights = "ema/adapter_model.safetensors" if "lora" in spec else "ema/model.safetensors"
    assert {weights, f"state/{STATE_NAME}"} <= paths
    held = average_of(trainer, "v2", "held")
    assert held["digest"] != published(trainer, "v2", "trained")["digest"]
    assert weights_of(tmp_path / "held").keys() == weights_of(tmp_path / "trained").keys()
    steps(trainer, ["v2", "v3"])
    digest = average_of(trainer, "v3", "first")["digest"]

    again = Trainer(tmp_path, ema_decay=DECAY, **spec)
    again.load("v2", checkpoint)
    assert average_of(again, "v2", "loaded")["digest"] == held["digest"]
    steps(again, ["v2", "v3"])
    assert average_of(again, "v3", "second")["digest"] == digest
    # A version that is made again from the base has the same average.
    again.load()
    steps(again, VERSIONS)
    assert average_of(again, "v3", "third")["digest"] == digest


def test_the_directory_of_an_average_is_a_model(tmp_path):
    from transformers import AutoModelForCausalLM

    trainer = averaging(tmp_path)
    steps(trainer, ["v0", "v1"])
    trainer.call("save", version="v1", dir=str(tmp_path / "checkpoint"))
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoint" / "ema")
    state = load_file(tmp_path / "checkpoint" / "state" / STATE_NAME)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, state[name]), name


def test_a_skipped_step_leaves_the_average_alone(tmp_path, monkeypatch):
    trainer = averaging(tmp_path)
    steps(trainer, ["v0", "v1"])
    digest = average_of(trainer, "v1", "before")["digest"]
    monkeypatch.setattr(trainer.worker.engine, "step", lambda lr: None)
    assert "skipped" in steps(trainer, ["v1", "v2"])[0]
    assert average_of(trainer, "v2", "after")["digest"] == digest


def test_a_checkpoint_without_an_average_starts_one(tmp_path):
    plain = Trainer(tmp_path)
    plain.create()
    plain.load()
    steps(plain, ["v0", "v1"])
    checkpoint = plain.call("save", version="v1", dir=str(tmp_path / "checkpoint"))
    assert not (tmp_path / "checkpoint" / "ema").exists()
    trained = published(plain, "v1")["digest"]
    trainer = Trainer(tmp_path, ema_decay=DECAY)
    trainer.load("v1", checkpoint)
    assert average_of(trainer, "v1", "average")["digest"] == trained


def test_without_an_average_none_is_published(tmp_path):
    trainer = Trainer(tmp_path)
    trainer.create()
    trainer.load()
    with pytest.raises(BadDataError, match=r"because trainer\.ema_decay is not set"):
        average_of(trainer, "v0", "average")


def test_an_average_of_another_model_is_refused(tmp_path):
    trainer = averaging(tmp_path)
    checkpoint = trainer.call("save", version="v0", dir=str(tmp_path / "checkpoint"))
    file = tmp_path / "checkpoint" / "state" / STATE_NAME
    tensors = load_file(file)
    tensors["other.weight"] = tensors.pop("model.norm.weight")
    save_file(tensors, file)
    files = [one for one in checkpoint["files"] if not one["path"].endswith(STATE_NAME)]
    with pytest.raises(BadDataError, match="only one of it and the model has 'model.norm.weight'"):
        trainer.load("v0", {**checkpoint, "files": files})
