"""An adapter that a run has written, merged into its base in a later process."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from holdfast_worker import weights
from holdfast_worker.model_opening import Opening
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.model.merge_adapter import main, merge_adapter
from own_model import give_code, use_modules
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


def adapter_of(tmp_path, recipe="tiny_qwen", prepare=lambda model: None, **spec):
    trainer = Trainer(tmp_path, **{"lora": LORA, **spec})
    trainer.create(recipe)
    prepare(tmp_path / "model")
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


DIFFERENT = {
    "open_with_missing": lambda tensors: tensors.pop("model.layers.1.mlp.up_proj.weight"),
    "open_with_unexpected": lambda tensors: tensors.update({"score.weight": torch.ones(1, 128)}),
}


@pytest.mark.parametrize("setting", list(DIFFERENT))
def test_a_base_is_opened_as_the_run_opened_it(tmp_path, setting):
    def prepare(model):
        tensors = load_file(model / "model.safetensors")
        DIFFERENT[setting](tensors)
        save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})

    adapter = adapter_of(tmp_path, prepare=prepare, **{setting: True})
    with pytest.raises(BadDataError, match="tensors"):
        merge_adapter(adapter, tmp_path / "later")
    merge_adapter(adapter, tmp_path / "later", Opening(**{setting: True}))
    assert files(tmp_path / "later") == files(tmp_path / "merged")


def test_a_base_with_trusted_code_is_merged(tmp_path, monkeypatch, capsys):
    use_modules(monkeypatch, tmp_path / "modules")
    adapter = adapter_of(tmp_path, prepare=give_code, trust_remote_code=True)
    how = {"trust_remote_code": False, "open_with_missing": False, "open_with_unexpected": False}
    for trusted, code in ((False, 2), (True, 0)):
        options = json.dumps({**how, "trust_remote_code": trusted})
        monkeypatch.setattr("sys.argv", ["", str(adapter), str(tmp_path / "later"), options])
        assert main() == code
    assert files(tmp_path / "later") == files(tmp_path / "merged")
    assert "trust_remote_code" in capsys.readouterr().err


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
