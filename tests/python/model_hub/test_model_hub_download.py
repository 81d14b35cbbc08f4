"""Files that are brought into the cache. Whole fetches: `tests/workers/model_hub_test.ts`."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast_worker.model_hub import download
from holdfast_worker.model_hub.failure import FetchFailure
from holdfast_worker.model_hub.files import HubFile
from holdfast_worker.model_hub.names import HubName
from hub_cache import COMMIT, use_cache

NAME = HubName("owner/tiny", "main", COMMIT)
BYTES = {"a.json": b"first", "model.safetensors": b"second", "config.json": b"last"}
FILES: list[HubFile] = [
    {"path": path, "bytes": len(data), "etag": hashlib.sha256(data).hexdigest()}
    for path, data in BYTES.items()
]


class Usage(NamedTuple):
    free: int


@pytest.fixture
def arrived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked for, in order, from a hub that gives `BYTES`."""
    snapshot = use_cache(monkeypatch, tmp_path) / "models--owner--tiny" / "snapshots" / COMMIT
    for module in (download,):
        monkeypatch.setattr(module, "cache_directory", lambda: tmp_path / "hub")
    asked: list[str] = []

    def one(name: HubName, path: str, *, again: bool = False) -> str:
        asked.append(f"{path} again" if again else path)
        snapshot.mkdir(parents=True, exist_ok=True)
        (snapshot / path).write_bytes(BYTES[path])
        return str(snapshot / path)

    monkeypatch.setattr(download, "download_one", one)
    return asked


def test_complete_fetches_what_is_missing_or_damaged_and_the_configuration_last(
    arrived: list[str], tmp_path: Path
) -> None:
    said: list[str] = []
    download.complete(NAME, FILES, said.append)
    assert (sorted(arrived), arrived[-1]) == (sorted(BYTES), "config.json")
    assert "3 files, 15 B, from" in said[0]
    arrived.clear()
    download.complete(NAME, FILES, said.append)
    assert (arrived, len(said)) == ([], 1)
    snapshot = tmp_path / "hub" / "models--owner--tiny" / "snapshots" / COMMIT
    (snapshot / "a.json").write_bytes(b"FIRST")
    download.complete(NAME, FILES, said.append)
    assert arrived == ["a.json again"]
    assert "1 file, 5 B, from" in said[1]


def test_what_another_fetch_brings_meanwhile_is_not_fetched_again(
    arrived: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "hub" / "models--owner--tiny" / "snapshots" / COMMIT

    def other_fetch(name: HubName, missing: list[HubFile]) -> None:
        snapshot.mkdir(parents=True)
        for file in missing:
            (snapshot / file["path"]).write_bytes(BYTES[file["path"]])

    monkeypatch.setattr(download, "_check_room", other_fetch)
    download.complete(NAME, FILES, lambda text: None)
    assert sorted(arrived) == sorted(BYTES)  # The client finds them: none is asked for again.


def test_complete_refuses_wrong_bytes_twice_and_keeps_none(
    arrived: list[str], tmp_path: Path
) -> None:
    wrong: list[HubFile] = [{**FILES[0], "etag": "0" * 64}, *FILES[1:]]
    with pytest.raises(FetchFailure, match="'a.json' arrives with different bytes"):
        download.complete(NAME, wrong, lambda text: None)
    assert arrived.count("a.json") == arrived.count("a.json again") == 1
    assert not list(tmp_path.rglob("a.json"))
    assert "config.json" not in arrived  # No copy that looks whole.


def test_complete_asks_for_room_first(arrived: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(14))
    with pytest.raises(FetchFailure, match="no room: it takes 15 B in .*, which has 14 B free"):
        download.complete(NAME, FILES, lambda text: None)
    assert arrived == []


def test_parts_that_a_killed_fetch_left_are_removed_unless_another_writes_them(
    arrived: list[str], tmp_path: Path
) -> None:
    from filelock import FileLock

    blobs = tmp_path / "hub" / "models--owner--tiny" / "blobs"
    blobs.mkdir(parents=True)
    parts = [blobs / f"{file['etag']}.1234abcd.incomplete" for file in FILES]
    for part in parts:
        part.write_bytes(b"part")
    lock: Any = tmp_path / "hub" / ".locks" / "models--owner--tiny" / f"{FILES[0]['etag']}.lock"
    lock.parent.mkdir(parents=True)
    with FileLock(lock):
        download.complete(NAME, FILES, lambda text: None)
    assert [part.exists() for part in parts] == [True, False, False]
