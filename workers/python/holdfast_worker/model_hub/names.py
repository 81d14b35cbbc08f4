"""The name of a model or data set at the hub, as `data/hub_name.ts` reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypedDict

NAME = re.compile(
    r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*)(?:@([^@\s]+))?(?:@([0-9a-f]{40}))?", re.ASCII
)
COMMIT = re.compile(r"[0-9a-f]{40}")
DEFAULT_REVISION = "main"


RepositoryKind = Literal["model", "dataset"]  # As the hub's client calls them.


@dataclass(frozen=True)
class HubName:
    """`OWNER/NAME[@REVISION[@COMMIT]]`. `commit`: None until the revision is resolved."""

    repository: str
    revision: str
    commit: str | None
    kind: RepositoryKind = "model"

    def __str__(self) -> str:
        if self.commit is None or self.commit == self.revision:
            return f"{self.repository}@{self.revision}"
        return f"{self.repository}@{self.revision}@{self.commit}"

    @property
    def what(self) -> str:
        """What a person calls it."""
        return "model" if self.kind == "model" else "data set"


class Part(TypedDict):
    """What is read of a data set: files by a pattern, or a split of a subset."""

    files: str | None
    subset: str | None
    split: str | None


def hub_name(text: str, kind: RepositoryKind = "model") -> HubName | None:
    """None: the text is not a name at the hub."""
    match = NAME.fullmatch(text)
    if match is None:
        return None
    repository, revision, commit = match.groups()
    revision = revision or DEFAULT_REVISION
    if commit is None and COMMIT.fullmatch(revision):
        commit = revision
    return HubName(repository, revision, commit, kind)
