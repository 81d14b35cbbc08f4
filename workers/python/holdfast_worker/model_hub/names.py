"""The name of a model at the hub, as `data/hub_name.ts` reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME = re.compile(
    r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*)(?:@([^@\s]+))?(?:@([0-9a-f]{40}))?", re.ASCII
)
COMMIT = re.compile(r"[0-9a-f]{40}")
DEFAULT_REVISION = "main"


@dataclass(frozen=True)
class HubName:
    """`OWNER/NAME[@REVISION[@COMMIT]]`. `commit`: None until the revision is resolved."""

    model: str
    revision: str
    commit: str | None

    def __str__(self) -> str:
        if self.commit is None or self.commit == self.revision:
            return f"{self.model}@{self.revision}"
        return f"{self.model}@{self.revision}@{self.commit}"


def hub_name(text: str) -> HubName | None:
    """None: the text is not the name of a model at the hub."""
    match = NAME.fullmatch(text)
    if match is None:
        return None
    model, revision, commit = match.groups()
    revision = revision or DEFAULT_REVISION
    if commit is None and COMMIT.fullmatch(revision):
        commit = revision
    return HubName(model, revision, commit)
