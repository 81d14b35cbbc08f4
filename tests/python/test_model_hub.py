"""The hub's models on this host, without a network: names, the cache and what is read of it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import sampler_fixtures as fixtures
from holdfast_worker.model_hub import cache
from holdfast_worker.model_hub.cache import model_directory, remember_commit
from holdfast_worker.model_hub.failure import size_text
from holdfast_worker.model_hub.files import HubFile, digest_of, files_in_cache, is_unharmed
from holdfast_worker.model_hub.names import HubName, hub_name
from holdfast_worker.model_hub.wanted import files_beside_weights, weights_entry
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.model_source import ModelSource
from trainer_harness import OPTIMIZER, Trainer

COMMIT = "c1899de289a04d12100db370d81485cdf75e47ca"
PINNED = f"owner/tiny@main@{COMMIT}"


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cache, "cache_directory", lambda: tmp_path / "hub")
    return tmp_path / "hub"


def in_cache(hub_cache: Path, model: Path) -> Path:
    """A copy of `model` as the hub's client keeps it: links to files named by their hashes."""
    storage = hub_cache / "models--owner--tiny"
    snapshot = storage / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (storage / "blobs").mkdir()
    for file in model.iterdir():
        etag = hashlib.sha256(file.read_bytes()).hexdigest()
        (storage / "blobs" / etag).write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(f"../../blobs/{etag}")
    return snapshot


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b", HubName("a/b", "main", None)),
        ("a/b@refs/pr/1", HubName("a/b", "refs/pr/1", None)),
        (f"a/b@{COMMIT}", HubName("a/b", COMMIT, COMMIT)),
        (f"a/b@v1@{COMMIT}", HubName("a/b", "v1", COMMIT)),
        *((text, None) for text in ("/a/b", "a", "a/b/c", "a/b@", "../a", "a/b@v1@c1899de", "a/.b")),
    ],
)
def test_hub_name_reads_names_as_the_engine_does(text: str, expected: HubName | None) -> None:
    assert hub_name(text) == expected
    if expected is not None:
        assert hub_name(str(expected)) == expected


def test_model_directory_is_the_caches_for_a_pinned_name_and_a_path_as_it_is(
    hub_cache: Path, tmp_path: Path
) -> None:
    assert model_directory(tmp_path / "model") == tmp_path / "model"
    assert model_directory("owner/tiny@main") == Path("owner/tiny@main")  # No commit: a path.
    message = f"Cannot open model '{PINNED}' because this host's cache {hub_cache} does not have it"
    with pytest.raises(BadDataError, match=message):
        model_directory(PINNED)
    snapshot = hub_cache / "models--owner--tiny" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    assert model_directory(PINNED) == model_directory(f"owner/tiny@{COMMIT}") == snapshot


def test_what_a_revision_meant_is_remembered_whole(hub_cache: Path) -> None:
    for revision in ("main", "refs/pr/1"):
        name = HubName("owner/tiny", revision, COMMIT)
        assert cache.cached_commit_of(name) is None
        remember_commit(name)
        remember_commit(name)
        assert cache.cached_commit_of(name) == COMMIT
    remember_commit(HubName("owner/tiny", COMMIT, COMMIT))  # A commit means itself.
    refs = hub_cache / "models--owner--tiny" / "refs"
    assert sorted(str(file.relative_to(refs)) for file in refs.rglob("*") if file.is_file()) == [
        "main",
        "refs/pr/1",
    ]


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


def test_the_files_of_a_model_are_its_configuration_tokenizer_and_templates() -> None:
    wanted = [
        "config.json",
        "merges.txt",
        "tokenizer.model",
        "qwen.tiktoken",
        "chat_template.jinja",
        "additional_chat_templates/tool.jinja",
    ]
    unread = ["README.md", "LICENSE.txt", "notice.txt", "pytorch_model.bin.index.json", "sub/a.json"]
    names = [*wanted, *unread, "own.py", "tf_model.h5"]
    assert files_beside_weights(names, code=False) == wanted
    assert files_beside_weights(names, code=True) == [*wanted, "own.py"]
    index, single = "model.safetensors.index.json", "model.safetensors"
    assert weights_entry([single, index]) == index
    assert weights_entry([single]) == single
    assert weights_entry(["consolidated.safetensors"]) is None


def test_size_text() -> None:
    sizes = [0, 1023, 1024, 1536 << 20, 3 << 40]
    assert [size_text(size) for size in sizes] == ["0 B", "1023 B", "1.0 KiB", "1.5 GiB", "3.0 TiB"]


def test_a_trainer_opens_measures_and_inspects_a_model_of_the_hub_as_its_directory(
    hub_cache: Path, tmp_path: Path
) -> None:
    model = fixtures.make_model(tmp_path / "tiny")
    snapshot = in_cache(hub_cache, model)
    assert ModelSource(PINNED).path == snapshot
    trainer = Trainer(tmp_path)
    named = trainer.call("inspect_model", dir=PINNED)
    assert named == trainer.call("inspect_model", dir=str(model))
    load = {"version": "v", "model_path": PINNED, "optimizer": OPTIMIZER, "checkpoint": None}
    trainer.call("load", **load, model_digest=named["digest"])
    publication = trainer.call("publish", version="v", dir=str(tmp_path / "published"))
    assert publication["digest"] == named["digest"]
    rows = trainer.artifacts.put_json([{"row_id": "a", "prompt": "sort 21"}])
    for path in (PINNED, str(model)):
        trainer.call("measure_rows", model_path=path, use="prompt", rows=rows)
        assert trainer.io.blobs[0] == trainer.io.blobs[-1]
    sampler = fixtures.make_worker()
    arguments = {"version": "v", "model_path": PINNED, "publication": publication}
    loaded = sampler.operations["load"](arguments, trainer.io)
    assert loaded["tensors_loaded"] == len(publication["tensors"])
