"""
The only place that removes directories. All other code calls it, which a test
(tests/python/test_removal.py) enforces.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class RemovalRefused(Exception):
    """What should be removed is not ours or is outside our directories: it stays."""


def remove_tree(path: str | Path, *, home: str | Path, named: str) -> bool:
    """
    Removes a file or a directory with all its content, following no link. False: it did not exist.

    `home`: the tree that must strictly contain it. Its first-level folders (checkpoints, ...) may
    be links that their owner made; below them none is followed. `named`: the pattern of the whole
    last name; we may remove only what we named ourselves. Every directory on the way is held open,
    so that none can be swapped between the check and the removal. Raises RemovalRefused.
    """
    path = Path(os.path.abspath(path))
    if not os.path.lexists(path):
        return False
    try:
        with parent_of(path, home=home) as parent:
            mode = os.stat(path.name, dir_fd=parent, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                raise refused(path, "it is a link")
            if not re.fullmatch(named, path.name):
                raise refused(path, f"'{path.name}' is not a name that Holdfast uses")
            if stat.S_ISDIR(mode):
                shutil.rmtree(path.name, dir_fd=parent)
            else:
                os.unlink(path.name, dir_fd=parent)
            return True
    except FileNotFoundError:
        return False


def replace_tree(target: str | Path, new: str | Path, *, home: str | Path, old: str) -> None:
    """
    Moves the directory `new` to `target`, whose previous directory is renamed to `old` and stays
    next to it. Raises RemovalRefused, before anything is moved, if the target is not a directory,
    or not strictly inside the home and free of links on the way, as for `remove_tree`.
    """
    target = Path(os.path.abspath(target))
    with parent_of(target, home=home) as parent:
        if not stat.S_ISDIR(os.stat(target.name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise refused(target, "a directory goes there and it is a link or a file")
        os.rename(target.name, old, src_dir_fd=parent, dst_dir_fd=parent)
        os.rename(new, target.name, dst_dir_fd=parent)


@contextmanager
def parent_of(path: str | Path, *, home: str | Path) -> Generator[int]:
    """
    A descriptor of the directory that contains `path`: operations relative to it stay there, even
    if names on the way change. Raises RemovalRefused if it is not strictly inside `home`, or is
    reached through a link.
    """
    path = Path(os.path.abspath(path))
    parent = _open_parent(path, Path(os.path.abspath(home)), _inside(path, home))
    try:
        yield parent
    finally:
        os.close(parent)


def _inside(path: Path, home: str | Path) -> tuple[str, ...]:
    """The names from `home` to `path`, at least one. Raises RemovalRefused if it is elsewhere."""
    try:
        parts = path.relative_to(os.path.abspath(home)).parts if str(home) else ()
    except ValueError:
        parts = ()
    if not parts:
        raise refused(path, f"it is not inside '{home}'")
    return parts


def _open_parent(path: Path, home: Path, parts: tuple[str, ...]) -> int:
    """A descriptor of the directory that contains `path`."""
    found = os.open(home / parts[0] if len(parts) > 1 else home, OPEN_DIRECTORY)
    for part in parts[1:-1]:
        try:
            below = os.open(part, OPEN_DIRECTORY | os.O_NOFOLLOW, dir_fd=found)
        except FileNotFoundError:
            raise
        except OSError as error:  # ELOOP or ENOTDIR, depending on the system.
            raise refused(
                path, f"'{part}' on the way to it is not a directory, or a link"
            ) from error
        finally:
            os.close(found)
        found = below
    return found


def refused(path: Path, why: str) -> RemovalRefused:
    return RemovalRefused(
        f"Cannot remove '{path}' because {why}. Fix: inspect it, and "
        "remove it by hand if you do not need it"
    )
