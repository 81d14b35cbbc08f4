"""An adapter that a run has written, merged into its base in a later process."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from holdfast_worker import weights
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.merge_adapter import merge_adapter
from torch_trainers import steps
from trainer_harness import Trainer

LORA = {
    "rank": 4,
    "alpha": 8,
    "dropout": 0,
    "targets": "all_linear",
    "quantize": None,
    "publish": "adapter",
}


def adapter_of(tmp_path, recipe="tiny_qwen", **spec):
    trainer = Trainer(tmp_path, **{"lora": LORA, **spec})
    trainer.create(recipe)
    trainer.load()
    steps(trainer, ["v0", "v1"])
    for form in ("adapter", "merged"):
        trainer.call("publish", version="v1", dir=str(tmp_path / form), form=form)
    return tmp_path / "adapter"


def files(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize(
    ("recipe", "spec"),
    [
        ("tiny_qwen", {}),
        ("tiny_qwen_untied", {"dtype": "bfloat16", "lora": {**LORA, "targets": ["q_proj"]}}),
    ],
)
def test_merged_it_has_every_byte_that_the_trainer_publishes_merged(tmp_path, recipe, spec):
    adapter = adapter_of(tmp_path, recipe, **spec)
    before = files(adapter)
    digest = merge_adapter(adapter, tmp_path / "later")
    assert digest == weights.digest_of_directory(tmp_path / "merged")
    assert files(tmp_path / "later") == files(tmp_path / "merged")
    assert files(adapter) == before
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"adapter", "artifacts", "later", "merged", "model"}


def test_a_base_with_different_weights_is_refused_and_nothing_is_written(tmp_path):
    adapter = adapter_of(tmp_path)
    file = tmp_path / "model" / "model.safetensors"
    tensors = load_file(file)
    name = min(tensors)
    tensors[name] = torch.zeros_like(tensors[name])
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(BadDataError, match="it was trained on a model with digest .*: the digest"):
        merge_adapter(adapter, tmp_path / "later")
    assert not (tmp_path / "later").exists()


def test_an_adapter_of_quantized_weights_is_refused(tmp_path):
    adapter = adapter_of(tmp_path)
    base = json.loads((adapter / weights.BASE_NAME).read_text())
    (adapter / weights.BASE_NAME).write_text(json.dumps({**base, "quantize": "nf4"}))
    with pytest.raises(BadDataError, match="because its base was trained in nf4"):
        merge_adapter(adapter, tmp_path / "later")
