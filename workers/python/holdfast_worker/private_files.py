"""
Who may read what a rank writes: its owner alone, but for models, which are as readable as the
user's umask says.
"""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE_UMASK = 0o077

_users_umask: int | None = None  # Before this process kept its files to itself.


def keep_private() -> None:
    """
    From here on. By the umask, for libraries write as well: DeepSpeed's shards, NCCL's recordings.
    """
    global _users_umask  # noqa: PLW0603 (The umask is the process's.)
    found = os.umask(PRIVATE_UMASK)
    _users_umask = found if _users_umask is None else _users_umask


def open_as_usual(directory: str | Path) -> None:
    """A model directory is for others too: the modes that the user's umask would have given it."""
    if _users_umask is None:
        return
    for path in (Path(directory), *Path(directory).rglob("*")):
        os.chmod(path, (0o777 if path.is_dir() else 0o666) & ~_users_umask)
