"""Why a model or data set of the hub cannot be used, in one sentence with a fix."""

from __future__ import annotations

from holdfast_worker.model_hub.cache import cache_directory
from holdfast_worker.model_hub.names import HubName


class FetchFailure(Exception):
    """`is_input`: the configuration is wrong. Otherwise this machine or its network is."""

    def __init__(self, text: str, *, is_input: bool = True) -> None:
        super().__init__(text)
        self.is_input = is_input


def endpoint() -> str:
    """The hub's address, or its mirror's."""
    from huggingface_hub import constants

    return constants.ENDPOINT


def page(name: HubName) -> str:
    """Where people read about it."""
    return f"{endpoint()}/{'datasets/' if name.kind == 'dataset' else ''}{name.repository}"


def has_token() -> bool:
    """Whether the hub knows who asks."""
    from huggingface_hub import get_token

    return get_token() is not None


def no_repository(name: HubName) -> FetchFailure:
    """The hub answers the same for one that does not exist and one that it hides."""
    hidden = "or hides it from your token" if has_token() else "or shows it only with a token"
    is_model = name.kind == "model"
    no_directory = f"; no directory has the name '{name.repository}'" if is_model else ""
    or_path = " or the directory's path" if is_model else ""
    return FetchFailure(
        f"Cannot fetch {name.what} '{name.repository}' because the hub {endpoint()} "
        f"has no such {name.what}, {hidden}{no_directory}. "
        f"Fix: correct the name (OWNER/NAME){or_path}, "
        f"or set HF_TOKEN to a token that may read the {name.what}"
    )


def refused_token(name: HubName) -> FetchFailure:
    """The hub checks a token even where it needs none."""
    return FetchFailure(
        f"Cannot fetch {name.what} '{name.repository}' because the hub {endpoint()} rejects your "
        "token: it answers 401. "
        f"Fix: set HF_TOKEN to a valid token, or unset it if the {name.what} is public"
    )


def no_revision(name: HubName) -> FetchFailure:
    """The repository is there."""
    return FetchFailure(
        f"Cannot fetch {name.what} '{name}' because the {name.what} has no revision "
        f"'{name.commit or name.revision}'. "
        f"Fix: name a branch, a tag or a whole commit of {page(name)}/commits/main"
    )


def no_access(name: HubName, status: int) -> FetchFailure:
    """A gated repository is listed, but its files are not given."""
    why = "your token has no access to it" if has_token() else "no token is set"
    return FetchFailure(
        f"Cannot fetch {name.what} '{name.repository}' because it is gated and {why}: "
        f"the hub answers {status}. "
        f"Fix: accept its conditions at {page(name)}, "
        "and set HF_TOKEN to a token of that account"
    )


def no_network(name: HubName, why: str) -> FetchFailure:
    """Neither the hub nor the cache has it."""
    from huggingface_hub import constants

    cause = (
        "this machine is offline (HF_HUB_OFFLINE is set)"
        if constants.HF_HUB_OFFLINE
        else f"the hub {endpoint()} cannot be reached ({why})"
    )
    fix = (
        "unset HF_HUB_OFFLINE"
        if constants.HF_HUB_OFFLINE
        else "check the network, or name a mirror (HF_ENDPOINT)"
    )
    return FetchFailure(
        f"Cannot fetch {name.what} '{name}' because {cause} "
        f"and the cache {cache_directory()} has no whole copy of it. "
        f"Fix: {fix}; or run `deno task rl fetch CONFIG` where there is a network "
        "and copy that cache; or name a directory",
        is_input=False,
    )


def no_room(name: HubName, *, needed: int, free: int) -> FetchFailure:
    """Known before the first byte."""
    return FetchFailure(
        f"Cannot fetch {name.what} '{name}' because the disk has no room: it takes {size_text(needed)} "
        f"in {cache_directory()}, which has {size_text(free)} free. "
        "Fix: free some space, or choose a different cache with HF_HOME",
        is_input=False,
    )


def size_text(count: int) -> str:
    """A number of bytes for a person."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
