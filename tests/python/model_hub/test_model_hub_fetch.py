"""The process that fetches models: what it reads and writes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast_worker.model_hub import fetch
from holdfast_worker.model_hub.failure import FetchFailure
from holdfast_worker.model_hub.files import HubFile, digest_of
from holdfast_worker.model_hub.names import HubName, Part
from hub_cache import COMMIT, PINNED, use_cache


def test_fetch_gives_recorded_files_without_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = use_cache(monkeypatch, tmp_path)
    files: list[HubFile] = [
        {"path": "b", "bytes": 2, "etag": "y"},
        {"path": "a", "bytes": 1, "etag": "x"},
    ]
    found = fetch.fetch({"name": PINNED, "code": False, "recorded": files}, download=False)
    assert found == {
        "name": PINNED,
        "directory": str(hub / "models--owner--tiny" / "snapshots" / COMMIT),
        "digest": digest_of(files),
        "bytes": 3,
        "files": files[::-1],
    }


def test_fetch_refuses_what_is_no_name() -> None:
    with pytest.raises(FetchFailure, match="because it is not a name at the hub"):
        fetch.fetch({"name": "/a/b", "code": False, "recorded": None}, download=True)


def test_fetch_needs_no_package_of_a_trainer():
    """Its own environment has none of them."""
    absent = "msgspec", "msgpack", "torch", "numpy", "transformers"
    program = f"import sys; sys.modules.update(dict.fromkeys({absent})); import holdfast_worker.model_hub.fetch"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_parts_of_one_revision_get_one_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch that moves between two of them would mix two versions."""
    names: list[str] = []

    def resolve_part(name: HubName, part: Part) -> tuple[HubName, list[HubFile]]:
        names.append(str(name))
        return replace(name, commit=name.commit or COMMIT), []

    monkeypatch.setattr(fetch, "resolve_part", resolve_part)
    commits: fetch.Commits = {}
    for split in ("train", "test"):
        part: Part = {"files": None, "subset": None, "split": split}
        one: fetch.Asked = {"name": "owner/rows", "code": False, "part": part, "recorded": None}
        found = fetch.fetch(one, download=False, commits=commits)
        assert found["name"] == f"owner/rows@main@{COMMIT}"
    assert names == ["owner/rows@main", f"owner/rows@main@{COMMIT}"]
