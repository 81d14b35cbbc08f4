"""The one place that removes directories. Everything else asks here: a test (tests/python/test_removal.py) sees to it."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class RemovalRefused(Exception):
    """What was to be removed is not ours, or not where ours lie: it stays."""


def remove_tree(path: str | Path, *, home: str | Path, named: str) -> bool:
    """
    Removes a file or a directory with all that is in it, following no link. False: it was not there.

    `home`: the tree that it must lie strictly inside. Its first-level folders (checkpoints, ...) may be links that their
    owner made; below them none is followed. `named`: the pattern of the whole last name; only what we named ourselves is
    ours to remove. Every directory on the way is held open, so that none can be swapped between the look and the removal.
    Raises RemovalRefused.
    """
    path = Path(os.path.abspath(path))
    if not os.path.lexists(path):
        return False
    parts = inside(path, home)
    try:
        parent = _open_parent(path, Path(os.path.abspath(home)), parts)
    except FileNotFoundError:
        return False
    try:
        mode = os.stat(path.name, dir_fd=parent, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise refused(path, "it is a link")
        if not re.fullmatch(named, path.name):
            raise refused(path, f"'{path.name}' is not a name that Holdfast gives")
        if stat.S_ISDIR(mode):
            shutil.rmtree(path.name, dir_fd=parent)
        else:
            os.unlink(path.name, dir_fd=parent)
        return True
    except FileNotFoundError:
        return False
    finally:
        os.close(parent)


def inside(path: str | Path, home: str | Path) -> tuple[str, ...]:
    """The names from `home` to `path`, of which there is at least one. Raises RemovalRefused if it lies elsewhere."""
    path = Path(os.path.abspath(path))
    try:
        parts = path.relative_to(os.path.abspath(home)).parts if str(home) else ()
    except ValueError:
        parts = ()
    if not parts:
        raise refused(path, f"it is not inside '{home}'")
    return parts


def _open_parent(path: Path, home: Path, parts: tuple[str, ...]) -> int:
    """A descriptor of the directory that holds `path`."""
    found = os.open(home / parts[0] if len(parts) > 1 else home, OPEN_DIRECTORY)
    for part in parts[1:-1]:
        try:
            below = os.open(part, OPEN_DIRECTORY | os.O_NOFOLLOW, dir_fd=found)
        except FileNotFoundError:
            raise
        except OSError as error:  # ELOOP or ENOTDIR, as the system likes.
            raise refused(path, f"'{part}' on the way to it is no directory, or a link") from error
        finally:
            os.close(found)
        found = below
    return found


def refused(path: Path, why: str) -> RemovalRefused:
    return RemovalRefused(
        f"Cannot remove '{path}' because {why}. Fix: look at it, and remove it by hand if it is not needed"
    )
