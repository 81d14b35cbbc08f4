"""
A user's algorithm file: loaded from its recorded text, with its settings checked and its errors
reported with file and line.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import linecache
import math
import sys
import traceback
import types
import typing
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from holdfast_worker.operation import BadDataError, UserCodeError
from holdfast_worker.rank.failures import OUT_OF_MEMORY_NAMES

PARTS = ("loss", "value_loss")
_MISSING = dataclasses.MISSING


class AlgorithmError(UserCodeError):
    """
    An algorithm file that cannot be used. Its message names the file, and the line if there is one.
    """


def did_you_mean(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else ""


@contextmanager
def telling_line(file: str, doing: str) -> Generator[None]:
    """
    Errors of the user's code become an AlgorithmError that names the last line of the file that
    they passed through.
    """
    try:
        yield
    except (AlgorithmError, BadDataError):
        raise
    except Exception as error:
        if {kind.__name__ for kind in type(error).__mro__} & OUT_OF_MEMORY_NAMES:
            raise  # The device's fault, not the user's: smaller micro-batches may fit.
        raise AlgorithmError(
            f"Cannot {doing} because {_place(file, error)}: {type(error).__name__}: {error}"
        ) from error


def _place(file: str, error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"{file}:{error.lineno} is no Python"
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file
    ]
    return (
        f"{file}:{frames[-1].lineno} raised, at `{frames[-1].line}`" if frames else f"{file} raised"
    )


class AlgorithmFile:
    """The module with this source text. `file` is its name in errors and debuggers."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        linecache.cache[file] = (
            len(text),
            None,
            text.splitlines(keepends=True),
            file,
        )  # For tracebacks and pdb.
        name = f"holdfast_algorithm_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        self.module = types.ModuleType(name)
        self.module.__file__ = file
        sys.modules[name] = self.module  # Dataclasses look their module up.
        with telling_line(file, f"load {Path(file).name}"):
            exec(compile(text, file, "exec"), self.module.__dict__)
        if not self.has("loss"):
            near = did_you_mean(
                "loss", [key for key, value in vars(self.module).items() if callable(value)]
            )
            raise AlgorithmError(
                f"Cannot use {file} because it has no function loss(x, c, s){near}"
            )

    def has(self, name: str) -> bool:
        return callable(getattr(self.module, name, None))

    def function(self, name: str) -> Any:
        return getattr(self.module, name)

    def constant(self, name: str, default: Any) -> Any:
        return getattr(self.module, name, default)

    def call(self, name: str, *arguments: Any) -> Any:
        """Calls a function of the file with as many of the arguments as it takes."""
        function = self.function(name)
        taken = function.__code__.co_argcount if hasattr(function, "__code__") else len(arguments)
        with telling_line(self.file, f"compute {name}()"):
            return function(*arguments[:taken])

    def profile(self, name: str | None) -> Mapping[str, Any]:
        """The settings of this name in the file's `PROFILES`; none without a name."""
        if name is None:
            return {}
        profiles = self.constant("PROFILES", {})
        if not isinstance(profiles, Mapping):
            raise AlgorithmError(
                f"Cannot use PROFILES of {self.file} because it is a {type(profiles).__name__}: "
                "write a dict that has a dict of settings for each name"
            )
        if name not in profiles:
            known = [str(one) for one in cast("Mapping[Any, Any]", profiles)]
            has = f"it has {', '.join(known)}" if known else "it has no PROFILES"
            raise AlgorithmError(
                f"Cannot use {self.file} with the profile '{name}' because there is none of that "
                f"name{did_you_mean(name, known)}: {has}"
            )
        found = cast("Mapping[str, Any]", profiles)[name]
        if not isinstance(found, Mapping):
            raise AlgorithmError(
                f"Cannot use the profile '{name}' of {self.file} because it is a "
                f"{type(found).__name__}: write a dict of settings"
            )
        return cast("Mapping[str, Any]", found)

    def settings(self, configured: Mapping[str, Any]) -> Any:
        """The file's `Config` with these settings, or nothing if it has none."""
        Config = getattr(self.module, "Config", None)
        if Config is None:
            Config = dataclasses.make_dataclass("Config", [])
        if not (isinstance(Config, type) and dataclasses.is_dataclass(Config)):
            raise AlgorithmError(
                f"Cannot use {self.file} because its Config is no dataclass: write @dataclass "
                "above it"
            )
        fields = {field.name: field for field in dataclasses.fields(Config) if field.init}
        for name in configured:
            if name not in fields:
                has = f"it has {', '.join(fields)}" if fields else "it has none"
                raise AlgorithmError(
                    f"Cannot use {self.file} with the setting '{name}' because there is none of "
                    "that name"
                    f"{did_you_mean(name, list(fields))}: {has}"
                )
        for name, field in fields.items():
            if (
                name not in configured
                and field.default is _MISSING
                and field.default_factory is _MISSING
            ):
                raise AlgorithmError(
                    f"Cannot use {self.file} because the setting '{name}' has no default: give it"
                )
        with telling_line(self.file, "make Config()"):
            hints = typing.get_type_hints(Config)
            return Config(
                **{
                    name: self._fitted(name, value, hints.get(name))
                    for name, value in configured.items()
                }
            )

    def _fitted(self, name: str, value: Any, hint: Any) -> Any:
        fitted = _fit(value, hint)
        if fitted is _MISSING:
            wanted = hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
            raise AlgorithmError(
                f"Cannot use {self.file} with the setting '{name}' {value!r}: expected {wanted}"
            )
        return fitted


def settings_json(config: Any, file: str) -> dict[str, Any]:
    """All settings as they are recorded. Numbers that JSON lacks are refused here, by name."""
    settings = dataclasses.asdict(config)
    for name, value in settings.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise AlgorithmError(
                f"Cannot record setting '{name}' of {file} because it is {value}: use a number, or "
                "None"
            )
    return settings


def _fit(value: Any, hint: Any) -> Any:
    """
    The value converted to a field's type, or _MISSING if it has the wrong type. Other types accept
    anything.
    """
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        fitted = (_fit(value, one) for one in typing.get_args(hint))
        return next((one for one in fitted if one is not _MISSING), _MISSING)
    if typing.get_origin(hint) is typing.Literal:
        return value if value in typing.get_args(hint) else _MISSING
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint in (int, float) and isinstance(value, bool):
        return _MISSING
    if hint in (bool, int, float, str, type(None)):
        return value if isinstance(value, hint) else _MISSING
    return value
