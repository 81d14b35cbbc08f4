"""The file in which an engine says where it listens (`hub.json` of the run)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast


@dataclass(frozen=True)
class HubAddress:
    """`epoch`: of the engine that listens there."""

    url: str
    token: str
    epoch: int


def read_hub(path: Path) -> HubAddress:
    """Raises OSError if there is no such file, ValueError if no engine has written it."""
    hub = json.loads(path.read_text())
    if not isinstance(hub, dict):
        raise ValueError(f"Cannot use {path} because it is not what an engine writes")
    names = ("url", "token", "epoch")
    fields = cast("Mapping[str, Any]", hub)
    missing = [name for name in names if name not in fields]
    if missing:
        raise ValueError(f"Cannot use {path} because it has no {', '.join(missing)}")
    return HubAddress(*(fields[name] for name in names))


def stamp_of(path: Path) -> tuple[int, int]:
    """Differs once the file was written again."""
    status = path.stat()
    return status.st_mtime_ns, status.st_ino
