"""What a name means at the hub. Its answers and refusals: `tests/workers/model_hub_test.ts`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sampler_fixtures as fixtures
from holdfast_worker.model_hub import resolve
from holdfast_worker.model_hub.cache import remember_commit, remember_part
from holdfast_worker.model_hub.failure import FetchFailure
from holdfast_worker.model_hub.files import HubFile
from holdfast_worker.model_hub.names import HubName, Part
from holdfast_worker.model_hub.resolve import Unreachable
from hub_cache import COMMIT, in_cache, use_cache

NAME = HubName("owner/tiny", "main", None)


def sibling(path: str, lfs: str | None = None) -> Any:
    large = None if lfs is None else {"sha256": lfs, "size": 7}
    return SimpleNamespace(rfilename=path, size=7, blob_id="git", lfs=large)


def answering(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
    """The hub answers, or cannot be reached."""
    queue = list(answers)

    def ask(name: HubName, question: Any) -> Any:
        answer = queue.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(resolve, "_ask", ask)


def test_resolve_gives_the_commit_and_the_files_in_order_with_the_hubs_hashes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    siblings = [
        sibling("config.json"),
        sibling("README.md"),
        sibling("model.safetensors", "sha"),
        sibling("tokenizer.json"),
    ]
    answering(monkeypatch, SimpleNamespace(sha=COMMIT, siblings=siblings), None)
    name, files = resolve.resolve(NAME, code=False)
    assert name == HubName("owner/tiny", "main", COMMIT)
    assert [(file["path"], file["etag"]) for file in files] == [
        ("tokenizer.json", "git"),
        ("model.safetensors", "sha"),
        ("config.json", "git"),
    ]


def test_resolve_without_the_hub_takes_a_whole_copy_or_says_why_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = use_cache(monkeypatch, tmp_path)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    answering(monkeypatch, *[Unreachable("no route")] * 3)
    with pytest.raises(FetchFailure, match=r"cannot be reached \(no route\) and the cache"):
        resolve.resolve(NAME, code=False)
    in_cache(hub, fixtures.make_model(tmp_path / "tiny"))
    pinned = HubName("owner/tiny", "main", COMMIT)
    remember_commit(pinned)
    for name in (NAME, pinned):
        found, files = resolve.resolve(name, code=False)
        assert found == pinned
        assert {file["path"] for file in files} >= {"config.json", "model.safetensors"}


ROWS = HubName("owner/rows", "main", None, "dataset")
PART: Part = {"files": "*.csv", "subset": None, "split": None}


def test_resolve_part_gives_the_commit_and_the_files_of_a_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    siblings = [sibling("b.csv"), sibling("a.csv", "sha"), sibling("../c.csv"), sibling("d.bin")]
    answering(monkeypatch, SimpleNamespace(sha=COMMIT, siblings=siblings), None)
    name, files = resolve.resolve_part(ROWS, PART)
    assert name == replace(ROWS, commit=COMMIT)
    assert [(file["path"], file["etag"]) for file in files] == [("a.csv", "sha"), ("b.csv", "git")]


def test_resolve_part_without_the_hub_takes_what_an_earlier_fetch_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_cache(monkeypatch, tmp_path)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    answering(monkeypatch, *[Unreachable("no route")] * 3)
    known = replace(ROWS, commit=COMMIT)
    files: list[HubFile] = [{"path": "a.csv", "bytes": 1, "etag": "x"}]
    remember_part(known, PART, files)
    with pytest.raises(FetchFailure, match="Cannot fetch data set 'owner/rows@main' because the"):
        resolve.resolve_part(ROWS, PART)  # Nobody knows what main means.
    remember_commit(known)
    assert resolve.resolve_part(ROWS, PART) == (known, files)
    other: Part = {**PART, "files": "b.csv"}
    with pytest.raises(FetchFailure, match=r"cannot be reached \(no route\) and the cache"):
        resolve.resolve_part(ROWS, other)
