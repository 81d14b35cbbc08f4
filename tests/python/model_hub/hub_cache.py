"""A hub's cache with a model in it, as the hub's client keeps it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from holdfast_worker.model_hub import cache

COMMIT = "c1899de289a04d12100db370d81485cdf75e47ca"
PINNED = f"owner/tiny@main@{COMMIT}"


def use_cache(monkeypatch: pytest.MonkeyPatch, directory: Path) -> Path:
    """The cache is in this directory during a test."""
    monkeypatch.setattr(cache, "cache_directory", lambda: directory / "hub")
    return directory / "hub"


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
