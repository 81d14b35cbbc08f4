"""The files of a model in the cache: which they are, and whether they are unharmed."""

from __future__ import annotations

from pathlib import Path

import pytest

import sampler_fixtures as fixtures
from holdfast_worker.model_hub.files import HubFile, digest_of, files_in_cache, is_unharmed
from hub_cache import in_cache, use_cache


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return use_cache(monkeypatch, tmp_path)


def test_files_in_cache_are_those_of_a_whole_model_with_the_hubs_names(
    hub_cache: Path, tmp_path: Path
) -> None:
    model = fixtures.make_model(tmp_path / "tiny")
    (model / "README.md").write_text("unread")
    (model / "own.py").write_text("code")
    snapshot = in_cache(hub_cache, model)
    files = files_in_cache(snapshot, code=False)
    assert files is not None
    names = {file.name for file in model.iterdir()} - {"README.md", "own.py"}
    assert {file["path"] for file in files} == names
    assert all(is_unharmed(snapshot / file["path"], file, whole=True) for file in files)
    with_code = files_in_cache(snapshot, code=True)
    assert with_code is not None and digest_of(with_code) != digest_of(files)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        link = (snapshot / name).readlink()
        (snapshot / name).unlink()
        assert files_in_cache(snapshot, code=False) is None, name
        (snapshot / name).symlink_to(link)
    (snapshot / "tokenizer.json").resolve().write_text("{}")
    assert files_in_cache(snapshot, code=False) is None  # Not the bytes that its name says.


def test_is_unharmed_compares_gits_hash_and_of_a_large_file_only_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast_worker.model_hub.files.SMALL_BYTES_MAX", 5)
    path = tmp_path / "file"
    path.write_text("hello")
    git: HubFile = {"path": "file", "bytes": 5, "etag": "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"}
    assert is_unharmed(path, git, whole=False)  # git hash-object
    assert not is_unharmed(path, {**git, "etag": "0" * 40}, whole=False)
    assert not is_unharmed(path, {**git, "bytes": 6}, whole=False)
    path.write_text("longer")
    large: HubFile = {"path": "file", "bytes": 6, "etag": "0" * 64}
    assert is_unharmed(path, large, whole=False)
    assert not is_unharmed(path, large, whole=True)
