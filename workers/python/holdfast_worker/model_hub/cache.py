"""Where the copy of a hub's model is on this host. Reads no network."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast_worker.model_hub.names import HubName, hub_name
from holdfast_worker.operation import BadDataError


def model_directory(text: str | Path) -> Path:
    """
    The directory of a model that is named by its path, or by its name and commit at the hub. Each
    host looks in its own cache, so a run finds its model wherever that is.
    """
    name = hub_name(str(text))
    if name is None or name.commit is None or Path(text).is_dir():
        return Path(text)
    directory = snapshot_of(name)
    if directory.is_dir():
        return directory
    raise BadDataError(
        f"Cannot open model '{text}' because this host's cache {cache_directory()} "
        "does not have it. "
        f"Fix: run `deno task rl fetch CONFIG model.path={text}` on this host, "
        "or name the cache that has it (HF_HOME)"
    )


def cache_directory() -> Path:
    """The hub's own cache, which other programs share."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def snapshot_of(name: HubName) -> Path:
    """The directory that has this commit's files, or will have them."""
    return storage_of(name.model) / "snapshots" / str(name.commit)


def storage_of(model: str) -> Path:
    """Everything that the cache has of a model."""
    return cache_directory() / f"models--{model.replace('/', '--')}"


def cached_commit_of(name: HubName) -> str | None:
    """What the revision meant when it was last resolved on this host. None: it never was."""
    file = storage_of(name.model) / "refs" / name.revision
    return file.read_text().strip() if file.is_file() else None


def remember_commit(name: HubName) -> None:
    """What the revision means, for a later start without a network."""
    if name.commit is None or name.commit == name.revision or cached_commit_of(name) == name.commit:
        return
    file = storage_of(name.model) / "refs" / name.revision
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(name.commit)
        temporary.replace(file)
    except OSError:
        return  # Several users may read one cache, and one of them write it.
