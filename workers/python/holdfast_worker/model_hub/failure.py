"""Why a model of the hub cannot be used, in one sentence with a fix."""

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


def has_token() -> bool:
    """Whether the hub knows who asks."""
    from huggingface_hub import get_token

    return get_token() is not None


def no_model(name: HubName) -> FetchFailure:
    """The hub answers the same for a model that does not exist and one that it hides."""
    hidden = "or hides it from your token" if has_token() else "or shows it only with a token"
    return FetchFailure(
        f"Cannot fetch model '{name.model}' because the hub {endpoint()} has no such model, "
        f"{hidden}; no directory has the name '{name.model}'. "
        "Fix: correct the name (OWNER/NAME) or the directory's path, "
        "or set HF_TOKEN to a token that may read the model"
    )


def refused_token() -> FetchFailure:
    """The hub checks a token even where it needs none."""
    return FetchFailure(
        f"Cannot fetch models because the hub {endpoint()} rejects your token: it answers 401. "
        "Fix: set HF_TOKEN to a valid token, or unset it for public models"
    )


def no_revision(name: HubName) -> FetchFailure:
    """The model is there."""
    return FetchFailure(
        f"Cannot fetch model '{name}' because the model has no revision "
        f"'{name.commit or name.revision}'. "
        f"Fix: name a branch, a tag or a whole commit of {endpoint()}/{name.model}/commits/main"
    )


def no_access(name: HubName, status: int) -> FetchFailure:
    """A gated model is listed, but its files are not given."""
    why = "your token has no access to it" if has_token() else "no token is set"
    return FetchFailure(
        f"Cannot fetch model '{name.model}' because it is gated and {why}: "
        f"the hub answers {status}. "
        f"Fix: accept its conditions at {endpoint()}/{name.model}, "
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
        f"Cannot fetch model '{name}' because {cause} "
        f"and the cache {cache_directory()} has no whole copy of it. "
        f"Fix: {fix}; or run `deno task rl fetch CONFIG` where there is a network "
        "and copy that cache; or name a directory",
        is_input=False,
    )


def no_room(name: HubName, *, needed: int, left: int) -> FetchFailure:
    """Known before the first byte."""
    return FetchFailure(
        f"Cannot fetch model '{name}' because the disk has no room: it takes {size_text(needed)} "
        f"in {cache_directory()}, which has {size_text(left)} free. "
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
