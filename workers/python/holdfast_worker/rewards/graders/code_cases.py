"""The cases of a row, in the shapes that data sets have: lists of {input, output}, {inputs,
outputs, fn_name} as in APPS and LiveCodeBench, asserts as in MBPP, a `check` function as in
HumanEval, and test files.
"""

from __future__ import annotations

import base64
import io
import json
import pickle
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from holdfast_worker.rewards.sandbox.values import is_dict, is_list

COLUMNS = (
    *("test_cases", "input_output", "public_test_cases", "verification_info"),
    *("test_list", "tests", "test", "unit_tests"),
)
HIDDEN = "private_test_cases"
UNPACKED_BYTES_MAX = 256 << 20
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Scripts:
    """What a program reads from standard input, and what it must print."""

    cases: list[tuple[str, str]]


@dataclass(frozen=True)
class Calls:
    """Arguments of a function, and the values that it may return."""

    function: str
    cases: list[tuple[list[Any], list[Any]]]


@dataclass(frozen=True)
class Tests:
    """Texts in Python. `entry`: the function that a `check` receives."""

    setup: str
    texts: list[str]
    entry: str | None


Cases = Scripts | Calls | Tests


def cases_of(row: Row, column: str | None) -> Cases:
    """Raises ValueError if the row has none that can be read."""
    names = [column] if column is not None else [*COLUMNS, "answer"]
    present = [name for name in names if row.get(name) not in (None, "", [], {})]
    if not present:
        raise ValueError(
            f"Cannot score with code because the row has no cases: none of {', '.join(names)}"
        )
    name = present[0]
    try:
        value = _loaded(row[name])
        if name == "public_test_cases" and row.get(HIDDEN):
            value = [*value, *_unpacked(row[HIDDEN])]
        return _read(value, row)
    except (ValueError, TypeError, KeyError, pickle.UnpicklingError, zlib.error) as error:
        raise ValueError(
            f"Cannot score with code because the row's '{name}' has no cases: {error}"
        ) from None


def _read(value: Any, row: Row) -> Cases:
    match value:
        case str():
            return Tests(_setup(row), [value], _text(row.get("entry_point")))
        case {"test_cases": inner}:
            return _read(_loaded(inner), row)
        case {"inputs": inputs, "outputs": outputs} if is_list(inputs) and is_list(outputs):
            if len(inputs) != len(outputs):
                raise ValueError(f"{len(inputs)} inputs and {len(outputs)} outputs")
            function = _text(value.get("fn_name"))
            return _pairs(list(zip(inputs, outputs, strict=True)), function)
        case [dict(), *_]:
            each = cast("list[dict[str, Any]]", value)
            function = next((name for one in each if (name := _function(one, row))), None)
            return _pairs([(one["input"], one["output"]) for one in each], function)
        case [str(), *_]:
            return Tests(_setup(row), [str(one) for one in value], _text(row.get("entry_point")))
        case _:
            raise ValueError(
                "expected [{input, output}], {inputs, outputs}, tests in Python or a list of them"
            )


def _pairs(pairs: list[tuple[Any, Any]], function: str | None) -> Cases:
    if not pairs:
        raise ValueError("it is empty")
    if function is None:
        return Scripts([(_lines(argument), _lines(wanted)) for argument, wanted in pairs])
    return Calls(function, [(_arguments(argument), _results(wanted)) for argument, wanted in pairs])


def _function(case: dict[str, Any], row: Row) -> str | None:
    """The function that a case calls: named by it, or by the row's metadata (LiveCodeBench)."""
    if case.get("fn_name"):
        return _text(case["fn_name"])
    kind = case.get("testtype", case.get("type"))
    if kind not in ("functional", "function_call"):
        return None
    metadata = _loaded(row.get("metadata"))
    named = metadata.get("func_name") if is_dict(metadata) else None
    if not named:
        raise ValueError("its cases call a function that neither they nor `metadata` name")
    return _text(named)


def _arguments(arguments: Any) -> list[Any]:
    """A list, or a text with one argument as JSON per line."""
    if isinstance(arguments, str):
        return [json.loads(line) for line in arguments.splitlines() if line.strip()]
    return list(arguments)


def _results(wanted: Any) -> list[Any]:
    """APPS puts a result into a list of one, but not always."""
    if isinstance(wanted, str):
        try:
            return [json.loads(wanted), wanted]
        except ValueError:
            return [wanted]
    return [wanted, wanted[0]] if is_list(wanted) and len(wanted) == 1 else [wanted]


def _lines(text: Any) -> str:
    return "\n".join(map(str, text)) if is_list(text) else str(text)


def _setup(row: Row) -> str:
    imports: Any = row.get("test_imports")
    texts = [str(one) for one in imports] if is_list(imports) else []
    return "\n".join([*texts, str(row.get("test_setup_code") or "")])


def _text(value: Any) -> str | None:
    return str(value) if value else None


def _loaded(value: Any) -> Any:
    """The value of a text that is JSON, else the text."""
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except ValueError:
        return value
    return found if is_list(found) or is_dict(found) else value


class _Nothing(pickle.Unpickler):
    """Texts, numbers and lists of them: LiveCodeBench pickles a text of JSON."""

    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        raise ValueError(f"it names {module_name}.{global_name}")


def _unpacked(value: Any) -> list[Any]:
    loaded = _loaded(value)
    if isinstance(loaded, str):
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(loaded), UNPACKED_BYTES_MAX)
        loaded = _loaded(_Nothing(io.BytesIO(data)).load())
    if not isinstance(loaded, list):
        raise TypeError(f"{HIDDEN} is not a list")
    return cast("list[Any]", loaded)
