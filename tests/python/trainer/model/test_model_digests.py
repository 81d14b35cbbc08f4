"""
A model directory whose weights changed under a run is refused, and one that did not is read once.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast_worker import weights
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.model.model_digests import ModelDigests
from trainer_harness import OPTIMIZER, Trainer

ALONE = SimpleNamespace(rank=0, gather=lambda value: [value])


def flip_last_byte(path: Path) -> None:
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))


@pytest.fixture
def trainer(tmp_path):
    trainer = Trainer(tmp_path)
    trainer.create()
    return trainer


def test_a_load_of_weights_that_are_not_the_recorded_ones_names_directory_digests_and_cure(trainer):
    model = trainer.directory / "model"
    recorded = trainer.call("inspect_model", dir=str(model))["digest"]
    load = {"version": "v0", "model_path": str(model), "optimizer": OPTIMIZER, "checkpoint": None}
    assert trainer.call("load", **load, model_digest=recorded)["version"] == "v0"
    flip_last_byte(model / "model.safetensors")
    found = weights.digest_of_directory(model)
    cure = f"'{model}'.*digest is {found[:12]}, recorded {recorded[:12]}. Fix: restore the recorded weights"
    with pytest.raises(BadDataError, match=cure):
        trainer.call("load", **load, model_digest=recorded)
    assert trainer.worker.held is None
    flip_last_byte(model / "model.safetensors")
    assert trainer.call("load", **load, model_digest=recorded)["version"] == "v0"
    assert trainer.call("load", **load)["version"] == "v0"  # Unknown: not compared.


def test_weights_are_read_once_in_a_process_until_their_files_change(trainer, monkeypatch):
    model = trainer.directory / "model"
    reads = []
    whole = weights.manifest_of_directory
    monkeypatch.setattr(
        weights, "manifest_of_directory", lambda path: reads.append(path) or whole(path)
    )
    models = ModelDigests()
    tensors = []
    digest = models.of(model, manifest=tensors)
    models.check(model, digest, ALONE)
    models.check(model, digest, ALONE)
    assert len(reads) == 1 and tensors
    os.utime(model / "model.safetensors", ns=(1, 1))
    models.check(model, digest, ALONE)
    assert len(reads) == 2


def test_torn_weights_are_told_to_every_rank(trainer):
    model = trainer.directory / "model"
    digest = weights.digest_of_directory(model)
    os.truncate(model / "model.safetensors", 100)
    messages = []
    ranks = SimpleNamespace(rank=0, gather=lambda value: messages.append(value) or [value])
    with pytest.raises(BadDataError, match="is broken"):
        ModelDigests().check(model, digest, ranks)
    assert messages[0][0] == "" and "is broken" in messages[0][1]
