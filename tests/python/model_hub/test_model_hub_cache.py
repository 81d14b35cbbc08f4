"""Where the copy of a hub's model is on this host."""

from __future__ import annotations

from pathlib import Path

import pytest

import sampler_fixtures as fixtures
from holdfast_worker.model_hub import cache
from holdfast_worker.model_hub.cache import model_directory, remember_commit, remember_part
from holdfast_worker.model_hub.files import HubFile
from holdfast_worker.model_hub.names import HubName, Part
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.model.model_source import ModelSource
from hub_cache import COMMIT, PINNED, in_cache, use_cache
from trainer_harness import OPTIMIZER, Trainer


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return use_cache(monkeypatch, tmp_path)


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


def test_the_files_of_a_part_are_remembered_at_each_commit_and_damage_is_forgotten(
    hub_cache: Path,
) -> None:
    name = HubName("owner/rows", "main", COMMIT, "dataset")
    part: Part = {"files": None, "subset": "größe", "split": "train"}
    files: list[HubFile] = [{"path": "a.csv", "bytes": 1, "etag": "x"}]
    assert cache.cached_part(name, part) is None
    remember_part(name, part, files)
    assert cache.cached_part(name, part) == files
    assert cache.cached_part(name, {**part, "split": "test"}) is None
    file = cache.part_file(name, part)
    assert file.parent == hub_cache / "datasets--owner--rows" / "holdfast" / COMMIT
    for damage in ("", "{}", '{"files": [{}]}', "[]"):
        file.write_text(damage)
        assert cache.cached_part(name, part) is None


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
