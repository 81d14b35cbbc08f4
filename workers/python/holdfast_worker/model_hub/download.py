"""Brings files of the hub into its cache on this host."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from holdfast_worker.model_hub import failure
from holdfast_worker.model_hub.cache import cache_directory, snapshot_of, storage_of
from holdfast_worker.model_hub.files import HubFile, is_unharmed
from holdfast_worker.model_hub.names import HubName
from holdfast_worker.model_hub.resolve import Unreachable, download_one

WORKERS = 4
SAY_S = 5.0

Say = Callable[[str], None]


def complete(name: HubName, files: list[HubFile], say: Say) -> None:
    """
    Fetches what the cache lacks or has damaged. A killed fetch leaves whole files, which the next
    one keeps.
    """
    directory = snapshot_of(name)
    missing = [
        file for file in files if not is_unharmed(directory / file["path"], file, whole=False)
    ]
    if not missing:
        return
    _remove_abandoned(name, missing)
    _check_room(name, missing)
    total = sum(file["bytes"] for file in missing)
    say(
        f"fetching {name.what} {name}: {_count(missing)}, {failure.size_text(total)}, "
        f"from {failure.endpoint()} to {cache_directory()}"
    )
    *before, last = missing  # In the order of `resolve`: config.json makes a copy a model.
    done = threading.Event()
    saying = threading.Thread(target=_say_often, args=(name, missing, say, done), daemon=True)
    saying.start()
    try:
        with ThreadPoolExecutor(WORKERS) as pool:
            for one in [pool.submit(_fetch, name, file) for file in before]:
                one.result()
        _fetch(name, last)
    except Unreachable as error:
        raise failure.no_network(name, str(error)) from error
    finally:
        done.set()
        saying.join()


def _count(files: list[HubFile]) -> str:
    return f"{len(files)} file{'' if len(files) == 1 else 's'}"


def _fetch(name: HubName, file: HubFile) -> None:
    """One file, whose bytes are compared with the hub's hash: the client compares their number."""
    path = snapshot_of(name) / file["path"]
    # Damaged; another fetch may have brought it meanwhile.
    again = path.exists() and not is_unharmed(path, file, whole=False)
    for force in (again, True):
        if is_unharmed(Path(download_one(name, file["path"], again=force)), file, whole=True):
            return
    path.unlink(missing_ok=True)  # Nobody, and no other program, may read it.
    _blob(name, file).unlink(missing_ok=True)
    raise failure.FetchFailure(
        f"Cannot fetch {name.what} '{name}' because its file '{file['path']}' arrives with different "
        "bytes than the hub lists. "
        "Fix: try again, or name a different mirror (HF_ENDPOINT)",
        is_input=False,
    )


def _check_room(name: HubName, missing: list[HubFile]) -> None:
    needed = sum(file["bytes"] for file in missing if not _blob(name, file).is_file())
    place = cache_directory()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if needed > free:
        raise failure.no_room(name, needed=needed, free=free)


def _blob(name: HubName, file: HubFile) -> Path:
    return storage_of(name) / "blobs" / file["etag"]


def _remove_abandoned(name: HubName, missing: list[HubFile]) -> None:
    """
    Parts that a killed fetch left: the client gives each part a new name and never reads an old
    one. The lock shows that no other process is writing it.
    """
    import filelock

    library: Any = filelock  # Its types are partly unknown.
    locks = cache_directory() / ".locks" / storage_of(name).name
    for file in missing:
        parts = list(_blob(name, file).parent.glob(f"{file['etag']}*.incomplete"))
        if not parts:
            continue
        locks.mkdir(parents=True, exist_ok=True)
        try:
            with library.FileLock(locks / f"{file['etag']}.lock", timeout=0.1, mode=0o664):
                for part in parts:
                    part.unlink(missing_ok=True)
        except TimeoutError:
            continue


def _say_often(name: HubName, files: list[HubFile], say: Say, done: threading.Event) -> None:
    total, began = sum(file["bytes"] for file in files), time.monotonic()
    while not done.wait(SAY_S):
        found = sum(_arrived(name, file) for file in files)
        passed = round(time.monotonic() - began)
        say(
            f"fetching {name.what} {name.repository}: "
            f"{failure.size_text(found)} of {failure.size_text(total)}, {passed} s"
        )


def _arrived(name: HubName, file: HubFile) -> int:
    parts = _blob(name, file).parent.glob(f"{file['etag']}*")
    return max((part.stat().st_size for part in parts if part.exists()), default=0)
