"""What a name means at the hub now: its commit and the files that a run reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast_worker.model_hub import failure
from holdfast_worker.model_hub.cache import cached_commit_of, cached_part, snapshot_of
from holdfast_worker.model_hub.files import HubFile, files_in_cache
from holdfast_worker.model_hub.names import HubName, Part
from holdfast_worker.model_hub.splits import CARD_NAME, files_of
from holdfast_worker.model_hub.wanted import (
    CONFIG_NAME,
    files_beside_weights,
    weights_entry,
    why_no_weights,
)
from holdfast_worker.weights import INDEX_NAME

TIMEOUT_S = 20.0


class Unreachable(Exception):
    """The hub gave no answer, or one that says nothing about the repository."""


def resolve(name: HubName, *, code: bool) -> tuple[HubName, list[HubFile]]:
    """
    A model's name with its commit, and the files at that commit: as the hub lists them, or without
    the hub, as the cache has them.
    """
    try:
        known, listed = _listing(name)
    except Unreachable as error:
        return _from_cache(name, code=code, why=str(error))
    if CONFIG_NAME not in listed:
        raise failure.FetchFailure(
            f"Cannot use model '{name}' because it has no config.json: "
            "it is not a model of transformers. "
            "Fix: name a model that has one"
        )
    entry = weights_entry(listed)
    if entry is None:
        raise failure.FetchFailure(f"Cannot use model '{name}' because {why_no_weights(listed)}")
    beside = files_beside_weights(listed, code=code)
    weights = [entry] if entry != INDEX_NAME else [entry, *_shards(known, listed)]
    # config.json last: a copy without it is not a model, so one that was cut is never used.
    order = [*(one for one in beside if one != CONFIG_NAME), *weights, CONFIG_NAME]
    _check_access(known, CONFIG_NAME)
    return known, [listed[path] for path in order]


def resolve_part(name: HubName, part: Part) -> tuple[HubName, list[HubFile]]:
    """
    A data set's name with its commit, and the files of a part of it. Without the hub, they are
    those of an earlier fetch: the cache alone does not say whether a split is whole.
    """
    try:
        known, listed = _listing(name)
        card = None
        if part["files"] is None and CARD_NAME in listed:
            card = Path(download_one(known, CARD_NAME)).read_text("utf-8", errors="replace")
    except Unreachable as error:
        commit = name.commit or cached_commit_of(name)
        known = replace(name, commit=commit)
        files = None if commit is None else cached_part(known, part)
        if files is None:
            raise failure.no_network(name, str(error)) from error
        return known, files
    paths = files_of(known, part, paths=listed, card=card)
    _check_access(known, paths[0])
    return known, [listed[path] for path in paths]


def _listing(name: HubName) -> tuple[HubName, dict[str, HubFile]]:
    """The name with its commit, and every file of the repository by its path."""

    def query(client: Any) -> Any:
        return client.HfApi().repo_info(
            name.repository,
            repo_type=name.kind,
            revision=name.commit or name.revision,
            files_metadata=True,
            timeout=TIMEOUT_S,
        )

    info = _ask(name, query)
    inside = [one for one in info.siblings if ".." not in one.rfilename.split("/")]
    return replace(name, commit=info.sha), {one.rfilename: _listed(one) for one in inside}


def _listed(sibling: Any) -> HubFile:
    lfs = sibling.lfs
    etag = sibling.blob_id if lfs is None else lfs["sha256"]
    return {"path": sibling.rfilename, "bytes": int(sibling.size), "etag": str(etag)}


def _shards(name: HubName, listed: dict[str, HubFile]) -> list[str]:
    index: dict[str, Any] = json.loads(Path(download_one(name, INDEX_NAME)).read_text())
    placed: dict[str, str] = index["weight_map"]
    shards = sorted(set(placed.values()))
    missing = [shard for shard in shards if shard not in listed]
    if missing:
        raise failure.FetchFailure(
            f"Cannot use model '{name}' because its {INDEX_NAME} names files that it does not "
            f"have: {', '.join(missing[:3])}. "
            "Fix: name a revision that is whole"
        )
    return shards


def download_one(name: HubName, path: str, *, again: bool = False) -> str:
    """Fetches one file into the cache, whole or not at all. Its path there."""

    def query(client: Any) -> Any:
        return client.hf_hub_download(
            name.repository,
            path,
            repo_type=name.kind,
            revision=name.commit,
            force_download=again,
        )

    return _ask(name, query)


def _check_access(name: HubName, path: str) -> None:
    """A gated repository is listed for everybody, so one of its files is asked for."""

    def query(client: Any) -> Any:
        url = client.hf_hub_url(name.repository, path, repo_type=name.kind, revision=name.commit)
        return client.get_hf_file_metadata(url, timeout=TIMEOUT_S)

    _ask(name, query)


def _ask(name: HubName, question: Callable[[Any], Any]) -> Any:
    """Asks the hub. What it says about the repository is a `FetchFailure`."""
    import huggingface_hub
    from huggingface_hub import errors

    try:
        return question(huggingface_hub)
    except errors.GatedRepoError as error:
        raise failure.no_access(name, _status(error) or 403) from error
    except errors.RevisionNotFoundError as error:
        raise failure.no_revision(name) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise failure.no_repository(name) from error
    except errors.HfHubHTTPError as error:
        raise _refusal(name, _status(error)) from error
    except errors.LocalEntryNotFoundError as error:
        raise Unreachable(_first_line(error.__cause__ or error)) from error
    except OSError as error:
        if error.errno is not None:
            raise failure.FetchFailure(
                f"Cannot fetch {name.what} '{name}' because the cache cannot be written: {error}. "
                "Fix: correct that, or choose a different cache with HF_HOME",
                is_input=False,
            ) from error
        raise Unreachable(_first_line(error)) from error
    except Exception as error:  # The client's own: httpx's or requests', by its release.
        raise Unreachable(_first_line(error)) from error


def _refusal(name: HubName, status: int | None) -> Exception:
    """Mirrors do not say which repository an answer is about, so the client cannot tell either."""
    if status == 401:
        return failure.refused_token(name) if failure.has_token() else failure.no_repository(name)
    if status == 403:
        return failure.no_access(name, status)
    return failure.no_repository(name) if status == 404 else Unreachable(f"it answers {status}")


def _status(error: Any) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _from_cache(name: HubName, *, code: bool, why: str) -> tuple[HubName, list[HubFile]]:
    commit = name.commit or cached_commit_of(name)
    if commit is not None:
        known = replace(name, commit=commit)
        files = files_in_cache(snapshot_of(known), code=code)
        if files is not None:
            return known, files
    raise failure.no_network(name, why)
