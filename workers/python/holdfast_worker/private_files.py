"""
Who may read what a rank writes: only its owner, except for models, which follow the user's umask.
"""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE_UMASK = 0o077

_users_umask: int | None = None  # The umask before this process made its files private.


def keep_private() -> None:
    """
    From here on. Uses the umask because libraries also write files: DeepSpeed's shards, NCCL's
    recordings.
    """
    global _users_umask  # noqa: PLW0603 (The umask is the process's.)
    found = os.umask(PRIVATE_UMASK)
    _users_umask = found if _users_umask is None else _users_umask


def open_as_usual(directory: str | Path) -> None:
    """Others may read a model directory: gives it the modes of the user's umask."""
    if _users_umask is None:
        return
    for path in (Path(directory), *Path(directory).rglob("*")):
        os.chmod(path, (0o777 if path.is_dir() else 0o666) & ~_users_umask)
