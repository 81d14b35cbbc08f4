"""
Whether this environment has everything that its locks name: each version, and every file of it.

Run in the environment, with JSON on standard input: `{"locks": [PATH, ...]}`, files of locked requirements,
or `{"packages": {NAME: VERSION}}`, what was there before. Prints what it should have and what is missing.
It needs the standard library only.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TypeVar

LOCKED = re.compile(
    r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([^\s;]+)(?:\s*;\s*(.*?))?\s*(?:--hash=.*|\\)?$"
)
COMPARISON = re.compile(r"([a-z_]+|'[^']*')\s*(==|!=|<=|>=|<|>)\s*([a-z_]+|'[^']*')")
COMPARED = re.compile(r"(?:True|False|and|or|[()\s])+")
FILES_SHOWN = 3
Comparable = TypeVar("Comparable", str, list[int])

MACHINE = {
    "implementation_name": sys.implementation.name,
    "os_name": os.name,
    "platform_machine": platform.machine(),
    "platform_python_implementation": platform.python_implementation(),
    "platform_system": platform.system(),
    "python_full_version": platform.python_version(),
    "python_version": "{}.{}".format(*sys.version_info[:2]),
    "sys_platform": sys.platform,
}


def locked_packages(text: str, machine: Mapping[str, str] = MACHINE) -> dict[str, str]:
    """Versions that a lock has for a machine, by normalized name."""
    found = (LOCKED.match(line) for line in text.splitlines())
    lines = (match.groups() for match in found if match)
    return {
        normalized(name): version
        for name, version, marker in lines
        if marker is None or holds(marker, machine)
    }


def holds(marker: str, machine: Mapping[str, str] = MACHINE) -> bool:
    """Whether a marker of a locked requirement is true. Raises ValueError for one of another form."""

    def value(operand: str) -> str:
        return operand[1:-1] if operand.startswith("'") else machine[operand]

    def compared(match: re.Match[str]) -> str:
        names, operator = match.group(1, 3), match.group(2)
        one, other = (value(operand) for operand in names)
        if any(name.startswith("python_") for name in names):
            return str(compare(operator, numbers(one), numbers(other)))
        return str(compare(operator, one, other))

    text = COMPARISON.sub(compared, marker)
    if not COMPARED.fullmatch(text):
        raise ValueError(
            f"Cannot read the marker '{marker}': it has more than comparisons, 'and' and 'or'"
        )
    return bool(eval(text, {"__builtins__": {}}))


def compare(operator: str, one: Comparable, other: Comparable) -> bool:
    return {
        "==": one == other,
        "!=": one != other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
    }[operator]


def numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def missing(packages: Mapping[str, str], installed: Iterable[Distribution]) -> list[str]:
    """What of these versions is not there, one text for each package."""
    by_name = {normalized(one.metadata["Name"]): one for one in installed if one.metadata["Name"]}
    texts = (missing_of(name, version, by_name.get(name)) for name, version in packages.items())
    return [text for text in texts if text is not None]


def missing_of(name: str, version: str, installed: Distribution | None) -> str | None:
    if installed is None:
        return f"{name} {version}"
    if installed.version != version:
        return f"{name} {version}: it is {installed.version}"
    # Python makes compiled files again.
    files = [file for file in installed.files or [] if file.suffix != ".pyc"]
    if not files:
        return f"the list of files of {name}"
    gone = [str(file) for file in files if not os.path.exists(installed.locate_file(file))]
    if not gone:
        return None
    more = f" and {len(gone) - FILES_SHOWN} more" if len(gone) > FILES_SHOWN else ""
    return f"{', '.join(gone[:FILES_SHOWN])}{more} of {name}"


def main() -> None:
    wanted = json.load(sys.stdin)
    packages: dict[str, str] = dict(wanted.get("packages", {}))
    for lock in wanted.get("locks", []):
        packages.update(locked_packages(Path(lock).read_text(encoding="utf-8")))
    places = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    print(
        json.dumps({"packages": packages, "missing": missing(packages, distributions(path=places))})
    )


if __name__ == "__main__":
    main()
