"""What a reward function's results depend on besides its sample: the code that was imported."""

from __future__ import annotations

import hashlib
import secrets
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType

INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")


def code_digest(function: str, *, style: str, settings: str | None) -> str:
    """Of the function's name, how it is called, the settings that make it,
    every module that is imported now and is no installed package, and
    the versions of Python and of all packages. A module that is imported only by a call is not
    part of it, nor is a file that the function reads.
    """
    digest = hashlib.sha256()
    declared = [function, style, settings or ""]
    parts = [*declared, sys.version, *_packages(), *_files(list(sys.modules.values()))]
    for part in parts:
        digest.update(f"{len(part)} {part}".encode())
    return digest.hexdigest()


def _packages() -> list[str]:
    return sorted({f"{one.name} {one.version}" for one in distributions()})


def _files(modules: Iterable[ModuleType | None]) -> list[str]:
    installed = {Path(sysconfig.get_path(name)).resolve() for name in INSTALLED}
    files = {Path(file).resolve() for module in modules if (file := _file_of(module))}
    user_files = [file for file in files if not installed.intersection(file.parents)]
    return sorted(f"{file.name} {_content(file)}" for file in user_files)


def _content(file: Path) -> str:
    """Of a file that cannot be read, nothing that is ever found again."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return secrets.token_hex(16)


def _file_of(module: ModuleType | None) -> str | None:
    """User code may put anything in `sys.modules`."""
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) else None
