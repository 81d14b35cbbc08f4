"""Where copies of the hub's models and data sets are on this host. Reads no network."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast_worker.model_hub.names import HubName, Part, hub_name
from holdfast_worker.operation import BadDataError

if TYPE_CHECKING:
    from holdfast_worker.model_hub.files import HubFile


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
    return storage_of(name) / "snapshots" / str(name.commit)


def storage_of(name: HubName) -> Path:
    """Everything that the cache has of a repository."""
    return cache_directory() / f"{name.kind}s--{name.repository.replace('/', '--')}"


def cached_commit_of(name: HubName) -> str | None:
    """What the revision meant when it was last resolved on this host. None: it never was."""
    file = storage_of(name) / "refs" / name.revision
    return file.read_text().strip() if file.is_file() else None


def remember_commit(name: HubName) -> None:
    """What the revision means, for a later start without a network."""
    if name.commit is None or name.commit == name.revision or cached_commit_of(name) == name.commit:
        return
    try:
        write_whole(storage_of(name) / "refs" / name.revision, name.commit)
    except OSError:
        return  # Several users may read one cache, and one of them write it.


def write_whole(file: Path, text: str) -> None:
    """A reader sees all of it or what was there."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(file)


def remember_part(name: HubName, part: Part, files: list[HubFile]) -> None:
    """
    Which files a part of a data set is, once the cache has them: sources are read by this list
    (`data/sources/hub_files.ts`), and it says without a network that the copy is whole.
    """
    if cached_part(name, part) != files:  # One of several users may write a shared cache.
        write_whole(part_file(name, part), json.dumps({"files": files}))


def cached_part(name: HubName, part: Part) -> list[HubFile] | None:
    """What was remembered. None: nothing, or it is damaged."""
    try:
        files: list[HubFile] = json.loads(part_file(name, part).read_text("utf-8"))["files"]
        return [{"path": one["path"], "bytes": one["bytes"], "etag": one["etag"]} for one in files]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def part_file(name: HubName, part: Part) -> Path:
    """Beside the client's files, which it leaves alone; so a copied cache has it too."""
    identity = [part["files"], part["subset"], part["split"]]
    text = json.dumps(identity, ensure_ascii=False, separators=(",", ":"))
    key = hashlib.sha256(text.encode()).hexdigest()
    return storage_of(name) / "holdfast" / str(name.commit) / f"{key}.json"
