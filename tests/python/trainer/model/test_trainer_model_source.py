"""A model directory as it is opened, and as it is written again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from holdfast_worker import weights
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.model import model_source
from holdfast_worker.trainer.model.model_source import (
    ModelSource,
    saved_names,
    set_dropout,
    split_shards,
)
from sampler_fixtures import make_model


@pytest.fixture(scope="module")
def shared_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def model(shared_model: Path, tmp_path: Path) -> Path:
    return shutil.copytree(shared_model, tmp_path / "model")


def test_everything_but_weights_indexes_directories_and_huge_files_is_kept(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file.name for file in model.iterdir()} - {"model.safetensors"}
    for name in ("pytorch_model.bin", "a.gguf", "model.safetensors.index.json", "x.lock"):
        (model / name).write_text("{}")
    (model / "onnx").mkdir()
    (model / "notes.md").write_text("kept")
    monkeypatch.setattr(model_source, "COPIED_BYTES_MAX", 1 << 20)
    (model / "log.txt").write_bytes(b"x" * ((1 << 20) + 1))
    source = ModelSource(model)
    assert source.files.keys() == before | {"notes.md"}
    assert source.files["notes.md"] == b"kept"


def test_what_is_written_is_what_was_read_with_other_weights(model: Path, tmp_path: Path) -> None:
    source = ModelSource(model)
    opened = source.open_model("float32")
    state = opened.state_dict()
    tensors = {name: state[name].clone() + 1 for name in saved_names(opened)}
    source.write(tmp_path / "out", model=opened, tensors=tensors, dtype="float32")
    written = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    assert written.keys() == source.files.keys() | {"model.safetensors"}
    unchanged = source.files.keys() - {"config.json"}
    assert {name: written[name] for name in unchanged} == {
        name: source.files[name] for name in unchanged
    }
    config, old = json.loads(written["config.json"]), dict(source.config)
    assert config.pop("dtype") == "float32"
    old.pop("dtype", None)
    old.pop("torch_dtype", None)
    assert config == old
    loaded = load_file(tmp_path / "out" / "model.safetensors")
    assert loaded.keys() == load_file(model / "model.safetensors").keys()
    assert all(torch.equal(loaded[name], tensors[name]) for name in loaded)
    assert weights.check_model_directory(tmp_path / "out")["dtype"] == "float32"


def test_an_opened_model_trains_in_its_dtype_and_owns_its_memory(model: Path) -> None:
    opened = ModelSource(model).open_model("bfloat16", dropout=0.25)
    assert opened.training
    assert {parameter.dtype for parameter in opened.parameters()} == {torch.bfloat16}
    assert opened.config.attention_dropout == 0.25
    assert all(parameter.data_ptr() % 64 == 0 for parameter in opened.parameters())


def test_a_directory_that_transformers_cannot_open_is_bad_data(model: Path) -> None:
    source = ModelSource(model)
    (model / "model.safetensors").unlink()
    with pytest.raises(BadDataError, match=f"^Cannot open model '{model}': "):
        source.open_model("float32")


def test_set_dropout_sets_every_dropout_of_a_model_and_of_its_text_part() -> None:
    text = SimpleNamespace(attention_dropout=0.1, resid_pdrop=0.1, dropout_type="x", hidden_size=4)
    config = SimpleNamespace(embd_pdrop=0.1, hidden_dropout_prob=0.1, text_config=text)
    set_dropout(config, 0.5)
    assert (config.embd_pdrop, config.hidden_dropout_prob) == (0.5, 0.5)
    assert vars(text) == {
        "attention_dropout": 0.5,
        "resid_pdrop": 0.5,
        "dropout_type": "x",
        "hidden_size": 4,
    }


def test_saved_names_has_a_shared_tensor_once_and_buffers_of_the_state() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(3, 2)
            self.head = torch.nn.Linear(2, 3, bias=False)
            self.head.weight = self.embed.weight
            self.register_buffer("scale", torch.ones(1))
            self.register_buffer("cache", torch.ones(1), persistent=False)
            self.register_buffer("old", torch.ones(1))

    model = Tied()
    assert saved_names(model) == ["embed.weight", "scale", "old"]
    model._keys_to_ignore_on_save = ["old"]
    assert saved_names(model) == ["embed.weight", "scale"]


def test_split_shards_has_an_index_only_for_several_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tensors = {name: torch.zeros(500) for name in ("a", "b", "c")}
    assert split_shards(tensors) == ({"model.safetensors": ["a", "b", "c"]}, None)
    monkeypatch.setattr(model_source, "SHARD_BYTES_MAX", "4KB")
    shards, index = split_shards(tensors)
    first, second = (f"model-0000{n}-of-00002.safetensors" for n in (1, 2))
    assert shards == {first: ["a", "b"], second: ["c"]}
    assert index is not None
    assert index["weight_map"] == {"a": first, "b": first, "c": second}
    assert index["metadata"]["total_size"] == 6000
