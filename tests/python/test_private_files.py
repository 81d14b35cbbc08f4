"""
What a rank writes is its owner's alone, but for models: they are as readable as the umask of
whoever started it.
"""

from __future__ import annotations

import os
import stat

import pytest

from holdfast_worker import private_files
from test_trainer_adapter import adapted, published


@pytest.fixture(params=[0o022, 0o027], ids=oct)
def umask(request, monkeypatch):
    """The user's, in a rank that keeps its files to itself."""
    monkeypatch.setattr(private_files, "_users_umask", None)
    before = os.umask(request.param)
    private_files.keep_private()
    yield request.param
    os.umask(before)


def modes(directory):
    return {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in (directory, *directory.rglob("*"))
    }


def test_a_published_adapter_and_a_merged_model_are_as_readable_as_the_umask_says(tmp_path, umask):
    trainer = adapted(tmp_path)
    for form, weights in (
        ("adapter", "adapter_model.safetensors"),
        ("merged", "model.safetensors"),
    ):
        published(trainer, "v0", form)
        found = modes(tmp_path / form)
        assert found.pop(form) == 0o777 & ~umask
        assert weights in found and set(found.values()) == {0o666 & ~umask}, found


def test_what_is_no_model_is_its_owners_alone(tmp_path, umask):
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "optimizer.bin").write_bytes(b"")
    assert modes(tmp_path / "shards") == {"shards": 0o700, "optimizer.bin": 0o600}
