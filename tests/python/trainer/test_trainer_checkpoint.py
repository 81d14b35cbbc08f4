"""Checkpoints and publications of a trainer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from holdfast_worker import weights
from holdfast_worker.operation import BadDataError
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import FileEntry
from torch_trainers import LENGTHS, published, steps
from trainer_harness import (
    OPTIMIZER,
    POLICY_LOSS,
    Trainer,
    run_ranks,
    trajectory_batch,
)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_training_from_a_checkpoint_in_a_new_process_gives_the_bits_of_training_on(tmp_path, dtype):
    trainer = Trainer(tmp_path, dtype=dtype)
    trainer.create()
    trainer.load()
    steps(trainer, ["v0", "v1", "v2", "v3"])
    checkpoint = trainer.call("save", version="v3", dir=str(tmp_path / "checkpoint"))
    expected = steps(trainer, ["v3", "v4", "v5"])
    digest = published(trainer, "v5")["digest"]

    batches = [
        trainer.artifacts.put_json(trajectory_batch(trainer.artifacts, LENGTHS, seed=k))
        for k in (3, 4)
    ]
    loss = trainer.artifacts.put_json(POLICY_LOSS)
    load = {
        "version": "v3",
        "model_path": "unused",
        "optimizer": OPTIMIZER,
        "checkpoint": checkpoint,
    }
    train = [
        {
            **{"from": f"v{k}", "to": f"v{k + 1}", "batch": batch, "loss": loss},
            **{"optimizer": OPTIMIZER, "micro_batch_tokens_max": 64},
        }
        for k, batch in zip((3, 4), batches)
    ]
    script = [{"op": "load", "args": load}, *({"op": "train", "args": args} for args in train)]
    script.append({"op": "publish", "args": {"version": "v5", "dir": str(tmp_path / "again")}})
    answers = run_ranks(
        tmp_path, script, artifacts=trainer.artifacts, ranks=1, engine="torch", dtype=dtype
    )[0]
    assert [step for answer in answers[2:4] for step in answer["steps"]] == expected
    assert answers[4]["digest"] == digest


@pytest.mark.parametrize("recipe", ["tiny_qwen", "tiny_qwen_untied"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_publish_writes_what_from_pretrained_opens(tmp_path, recipe, dtype):
    trainer = Trainer(tmp_path, dtype=dtype)
    model_dir = trainer.create(recipe)
    trainer.load()
    steps(trainer, ["v0", "v1"])
    publication = published(trainer, "v1")
    directory = Path(publication["dir"])
    model = AutoModelForCausalLM.from_pretrained(directory)
    assert str(model.dtype) == f"torch.{dtype}"
    ours = trainer.worker.engine.module.state_dict()
    assert all(torch.equal(ours[name], tensor) for name, tensor in model.state_dict().items())
    assert AutoTokenizer.from_pretrained(directory).encode("a 1") == AutoTokenizer.from_pretrained(
        model_dir
    ).encode("a 1")
    names = [tensor.name for tensor in weights.locate_tensors(model_dir)]
    assert [tensor["name"] for tensor in publication["tensors"]] == names
    assert publication["digest"] == weights.digest_of_directory(directory)
    assert publication["tensors"] == weights.manifest_of_directory(directory)[0]
    weights.verify_files(directory, decode(list[FileEntry], publication["files"]))
    assert published(trainer, "v1")["digest"] == publication["digest"]
    assert (
        sorted(path.name for path in directory.parent.iterdir() if path.name.startswith(".")) == []
    )


def test_publish_of_an_untrained_version_has_the_digest_of_the_model(trainer):
    inspected = trainer.call("inspect_model", dir=str(trainer.directory / "model"))
    assert published(trainer, "v0")["digest"] == inspected["digest"]
    assert inspected["architecture"] == "Qwen2ForCausalLM"
    assert inspected["parameters"] == sum(
        p.numel() for p in trainer.worker.engine.module.parameters()
    )


def test_save_answers_all_files_and_the_digest_of_its_model(trainer):
    steps(trainer, ["v0", "v1"])
    checkpoint = trainer.call("save", version="v1", dir=str(trainer.directory / "checkpoint"))
    directory = Path(checkpoint["dir"])
    assert [file["path"] for file in checkpoint["files"]] == [
        path.relative_to(directory).as_posix() for path in weights.list_files(directory)
    ]
    assert checkpoint["digest"] == published(trainer, "v1")["digest"]
    assert checkpoint["digest"] == weights.digest_of_directory(directory / "hf")
    assert (checkpoint["version"], checkpoint["world_size"]) == ("v1", 1)


@pytest.mark.parametrize(
    "path", ["hf/model.safetensors", "state/torch_state.pt", "state/rng_rank_0_.pt"]
)
def test_load_refuses_a_checkpoint_with_one_flipped_bit_and_names_the_file(trainer, path):
    checkpoint = trainer.call("save", version="v0", dir=str(trainer.directory / "checkpoint"))
    data = bytearray((trainer.directory / "checkpoint" / path).read_bytes())
    data[len(data) // 2] ^= 4
    (trainer.directory / "checkpoint" / path).write_bytes(data)
    with pytest.raises(BadDataError, match=f"'{path}' is not the recorded one"):
        trainer.load(checkpoint=checkpoint)
    assert trainer.call("publish", version="v0", dir="unused") == {"not_resident": None}


def test_load_refuses_a_checkpoint_of_another_trainer(trainer, tmp_path):
    checkpoint = trainer.call("save", version="v0", dir=str(tmp_path / "checkpoint"))
    other = Trainer(tmp_path, dtype="bfloat16")
    with pytest.raises(BadDataError, match="dtype is bfloat16, saved float32"):
        other.load(checkpoint=checkpoint)


def test_load_from_a_checkpoint_takes_the_optimizer_that_is_asked_for(trainer):
    steps(trainer, ["v0", "v1", "v2"])
    checkpoint = trainer.call("save", version="v2", dir=str(trainer.directory / "checkpoint"))
    trainer.load("v2", checkpoint, lr=0.5, betas=[0.5, 0.6])
    taken = steps(trainer, ["v2", "v3"])
    assert taken[0]["lr"] == 0.5
    assert trainer.worker.engine.optimizer.param_groups[0]["betas"] == (0.5, 0.6)
