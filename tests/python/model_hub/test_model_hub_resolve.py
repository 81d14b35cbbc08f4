"""What a name means at the hub. Its answers and refusals: `tests/workers/model_hub_test.ts`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sampler_fixtures as fixtures
from holdfast_worker.model_hub import resolve
from holdfast_worker.model_hub.cache import remember_commit
from holdfast_worker.model_hub.failure import FetchFailure
from holdfast_worker.model_hub.names import HubName
from holdfast_worker.model_hub.resolve import Unreachable
from hub_cache import COMMIT, in_cache, use_cache

NAME = HubName("owner/tiny", "main", None)


def sibling(path: str, lfs: str | None = None) -> Any:
    large = None if lfs is None else {"sha256": lfs, "size": 7}
    return SimpleNamespace(rfilename=path, size=7, blob_id="git", lfs=large)


def answering(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
    """The hub answers, or cannot be reached."""
    left = list(answers)

    def ask(name: HubName, question: Any) -> Any:
        answer = left.pop(0)
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
