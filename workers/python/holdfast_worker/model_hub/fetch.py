"""Fetches from the hub before a run starts: `python -m holdfast_worker.model_hub.fetch`.

Reads {wanted: [{name, code, part, recorded}], download} as one line of JSON, then waits at the end
of its input: a fetch whose engine is gone ends. Writes lines of JSON: {say} while it works, then
{found: [{name, directory, digest, bytes, files}]}, or {failure, is_input}. `name` then has its
commit. `part`: of a data set; absent: it is a model. `recorded`: the files that a run recorded;
with them nobody asks the hub unless the cache lacks one.

This is the only process that receives a token of the hub. It runs no code of a model or data set.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from typing import NotRequired, TypedDict

from holdfast_worker.model_hub.cache import remember_commit, remember_part, snapshot_of
from holdfast_worker.model_hub.download import complete
from holdfast_worker.model_hub.failure import FetchFailure
from holdfast_worker.model_hub.files import HubFile, digest_of
from holdfast_worker.model_hub.names import HubName, Part, hub_name
from holdfast_worker.model_hub.resolve import resolve, resolve_part

Commits = dict[HubName, str]  # Of revisions, by their names without a commit.


class FetchRequest(TypedDict):
    """`code`: whether a model's own Python files are wanted."""

    name: str
    code: bool
    part: NotRequired[Part | None]
    recorded: list[HubFile] | None


class Fetched(TypedDict):
    """`name`: with the commit. `bytes`: of all files. `files`: of a data set in reading order."""

    name: str
    directory: str
    digest: str
    bytes: int
    files: list[HubFile]


def say(text: str) -> None:
    """For the person who waits."""
    _write({"say": text})


def fetch(request: FetchRequest, *, download: bool, commits: Commits | None = None) -> Fetched:
    """
    One model or part of a data set. `commits`: what revisions meant already, so that several parts
    of one revision have one commit. Raises `FetchFailure`.
    """
    part = request.get("part")
    name = hub_name(request["name"], "model" if part is None else "dataset")
    if name is None:
        raise FetchFailure(
            f"Cannot fetch '{request['name']}' because it is not a name at the hub. "
            "Fix: write OWNER/NAME or OWNER/NAME@REVISION"
        )
    known = {} if commits is None else commits
    free = replace(name, commit=None)
    name = replace(name, commit=name.commit or known.get(free))
    files = request["recorded"]
    if files is None:
        name, files = (
            resolve(name, code=request["code"]) if part is None else resolve_part(name, part)
        )
    known.setdefault(free, str(name.commit))
    if download:
        complete(name, files, say)
        remember_commit(name)
        if part is not None:
            remember_part(name, part, files)
    in_order = files if part else sorted(files, key=lambda file: file["path"])
    return _fetched(name, in_order)


def _fetched(name: HubName, files: list[HubFile]) -> Fetched:
    return {
        "name": str(name),
        "directory": str(snapshot_of(name)),
        "digest": digest_of(files),
        "bytes": sum(file["bytes"] for file in files),
        "files": files,
    }


def _write(message: object) -> None:
    print(json.dumps(message), flush=True)


def _read_line() -> bytes:
    """Not through `sys.stdin`: its lock is held while the other thread waits."""
    line = b""
    while not line.endswith(b"\n") and (piece := os.read(0, 1 << 16)):
        line += piece
    return line


def _end_with_engine() -> None:
    """Its input closes when the engine is gone. A file is then absent or whole."""
    while os.read(0, 1 << 16):
        pass
    os._exit(1)


def main() -> None:
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    request = json.loads(_read_line())
    threading.Thread(target=_end_with_engine, daemon=True).start()
    try:
        commits: Commits = {}
        found = [
            fetch(one, download=request["download"], commits=commits) for one in request["wanted"]
        ]
    except FetchFailure as failure:
        _write({"failure": str(failure), "is_input": failure.is_input})
        return
    _write({"found": found})


if __name__ == "__main__":
    main()
