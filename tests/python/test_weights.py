"""Digests, manifests and checks of model directories on disk."""

from __future__ import annotations

import hashlib
import json

import pytest
import torch
from safetensors.torch import save_file

from holdfast_worker import weights
from holdfast_worker.operation import BadDataError
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import FileEntry

TENSORS = {
    "b.weight": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "a.bias": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "c.scalar": torch.tensor(3, dtype=torch.int64),
}


@pytest.fixture
def directory(tmp_path):
    save_file(TENSORS, tmp_path / weights.SINGLE_NAME, metadata={"format": "pt"})
    return tmp_path


def test_digest_of_directory_is_the_documented_formula(directory):
    text = hashlib.sha256()
    text.update(b"a.bias\0BF16\0[2]\0" + bytes.fromhex("c03f00c0"))
    text.update(b"b.weight\0F32\0[2,3]\0" + TENSORS["b.weight"].numpy().tobytes())
    text.update(b"c.scalar\0I64\0[]\0" + (3).to_bytes(8, "little"))
    assert weights.digest_of_directory(directory) == text.hexdigest()


def test_manifest_of_tensors_equals_manifest_of_directory(directory):
    assert weights.manifest_of_tensors(TENSORS) == weights.manifest_of_directory(directory)


def test_digest_of_directory_does_not_depend_on_shards(directory, tmp_path):
    sharded = tmp_path / "sharded"
    sharded.mkdir()
    save_file({"b.weight": TENSORS["b.weight"]}, sharded / "one.safetensors")
    save_file({name: TENSORS[name] for name in ("a.bias", "c.scalar")}, sharded / "two.safetensors")
    places = {
        "b.weight": "one.safetensors",
        "a.bias": "two.safetensors",
        "c.scalar": "two.safetensors",
    }
    (sharded / weights.INDEX_NAME).write_text(json.dumps({"weight_map": places}))
    assert weights.digest_of_directory(sharded) == weights.digest_of_directory(directory)


def test_digest_of_directory_changes_with_one_bit(directory):
    before = weights.digest_of_directory(directory)
    flip(directory / weights.SINGLE_NAME)
    assert weights.digest_of_directory(directory) != before


def flip(path, place=-1):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_locate_tensors_refuses_a_file_that_is_cut_short(directory):
    path = directory / weights.SINGLE_NAME
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BadDataError, match="'b.weight'|'c.scalar'|'a.bias'.*cut short"):
        weights.locate_tensors(directory)


def test_verify_files_names_the_changed_and_the_missing_file(directory):
    files = decode(list[FileEntry], weights.files_of_directory(directory))
    weights.verify_files(directory, files)
    flip(directory / weights.SINGLE_NAME)
    with pytest.raises(BadDataError, match=f"'{weights.SINGLE_NAME}' is not the recorded one"):
        weights.verify_files(directory, files)
    (directory / weights.SINGLE_NAME).unlink()
    with pytest.raises(BadDataError, match=f"'{weights.SINGLE_NAME}' is missing"):
        weights.verify_files(directory, files)


def test_replace_directory_puts_the_new_one_whole_in_place_of_the_old(tmp_path):
    old, new = tmp_path / "out", tmp_path / "new"
    for path in (old, new):
        path.mkdir()
        (path / f"{path.name}.txt").write_text("x")
    weights.replace_directory(new, old, home=tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == [
        "out",
        "out/new.txt",
    ]


@pytest.mark.parametrize(
    ("present", "text"),
    [
        (None, "does not exist"),
        ([], "lacks config.json, model.safetensors .*, tokenizer.json"),
        (["config.json", "model.safetensors"], "lacks tokenizer.json"),
        (["config.json", "tokenizer.json", "pytorch_model.bin"], "its .bin weights are not read"),
        (
            ["adapter_config.json", "tokenizer.json"],
            "it holds an adapter: merge it into its base model",
        ),
    ],
)
def test_check_model_directory_says_what_is_missing(tmp_path, present, text):
    directory = tmp_path / "model"
    if present is not None:
        directory.mkdir()
        for name in present:
            (directory / name).write_text("{}")
    with pytest.raises(BadDataError, match=text):
        weights.check_model_directory(directory)
