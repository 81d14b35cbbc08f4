"""Runs the tests of a row against a program that is in a different interpreter. This file runs
inside of a sandbox which has only the tests: the program cannot reach it but by answers, and those
are plain values (@see values.py).
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import importlib
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any, cast

from holdfast_worker.rewards.sandbox.cases_of_tests import cases_of
from holdfast_worker.rewards.sandbox.values import (
    BadMessage,
    Encoded,
    Held,
    decode,
    decode_error,
    encode,
)

MODULES = ("solution", "main", "program")
Ask = Callable[[Encoded], Encoded]


class Remote:
    """An object of the program. Whether it equals a plain value is not the program's to say: it
    does not. What the program says about its own objects among themselves counts.
    """

    def __init__(self, side: TestsSide, number: Any) -> None:
        self.__dict__["_side"] = side
        self.__dict__["_number"] = number

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._side.call(self, args, named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._side.do("getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._side.do("setattr", self, name, value)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Remote):
            return False
        return self._number == other._number or self._side.do("eq", self, other) is True

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._side.do("hash", self))

    def __bool__(self) -> bool:
        return self._side.do("bool", self) is True

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Remote) and self._side.do("isinstance", self, value) is True

    def __subclasscheck__(self, value: Any) -> bool:
        return isinstance(value, Remote) and self._side.do("issubclass", self, value) is True

    def __str__(self) -> str:
        return _of(str, self._side.do("str", self))

    def __repr__(self) -> str:
        return _of(str, self._side.do("repr", self))

    def __len__(self) -> int:
        return _of(int, self._side.do("len", self))

    def __int__(self) -> int:
        return _of(int, self._side.do("int", self))

    def __float__(self) -> float:
        return _of(float, self._side.do("float", self))

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, Remote):
            raise TypeError("an object of the program cannot be asked whether it has a plain value")
        return self._side.do("contains", self, value) is True

    def __exit__(self, *_: Any) -> None:
        self._side.do("exit", self)


def _of(kind: type[Any], value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"the program gave no {kind.__name__}")
    return value


def _access(name: str) -> Callable[..., Any]:
    def access(self: Remote, *others: Any) -> Any:
        return self._side.do(name, self, *others)

    return access


def _order(name: str) -> Callable[..., Any]:
    def order(self: Remote, other: Any) -> bool:
        if not isinstance(other, Remote):
            raise TypeError("an object of the program cannot be ordered with a plain value")
        return self._side.do(name, self, other) is True

    return order


def _arithmetic(name: str) -> Callable[..., Any]:
    """`abs(f(2) - 3.5) < 1e-6` tells the program what is expected: it must not answer plainly."""

    def arithmetic(self: Remote, *others: Any) -> Any:
        value = self._side.do(name, self, *others)
        if not isinstance(value, Remote):
            raise TypeError("arithmetic with an object of the program gave a plain value")
        return value

    return arithmetic


for _name in ("iter", "next", "getitem", "setitem", "delitem", "enter"):
    setattr(Remote, f"__{_name}__", _access(_name))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Remote, f"__{_name}__", _order(_name))
for _name in (
    *("abs", "neg", "invert", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow"),
    *("matmul", "xor", "iadd", "lshift", "rshift"),
):
    setattr(Remote, f"__{_name}__", _arithmetic(_name))
for _name in ("and", "or"):
    setattr(Remote, f"__{_name}__", _arithmetic(f"{_name}_"))


class TestsSide:
    """`ask` sends a message to the program's side and gives its answer."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._held = Held()
        self._raised: list[BaseException] = []  # By the program, in the case that runs.
        self._errors: dict[str, type[BaseException]] = {}
        self._cases: list[Callable[[], Any]] = []
        self._own_names: set[str] = set()
        module = types.ModuleType("tests")
        sys.modules["tests"] = module
        self._space = module.__dict__

    def answer(self, message: Encoded) -> Encoded:
        """`load` gives the number of cases, without running anything; `run`, whether one is right.
        `broken`: the row is at fault, not the program.
        """
        match message:
            case {"op": "load", "setup": setup, "tests": tests, "entry": entry}:
                try:
                    self._cases = cases_of(setup, tests, entry=entry, space=self._space)
                    self._own_names = set[str]().union(*map(_names_of, [setup, *tests]))
                except (SyntaxError, ValueError) as error:
                    return {"broken": _described(error)}
                return {"cases": len(self._cases)}
            case {"op": "names", "names": names, "entry": entry}:
                self._take(names, entry)
                return {}
            case {"op": "run", "case": number}:
                return self._run(number)
            case _:
                raise BadMessage("no such operation")

    def answer_program(self, message: Encoded) -> Encoded:
        """By the program: to call a function of the tests that it was given. Nothing else."""
        try:
            function = self._held.get(message["call"])
            value = function(*[self._decode(one) for one in message["args"]])
            return {"value": self._encode(value)}
        except BaseException:
            return {"error": True}

    def call(self, function: Remote, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        reply = self._answered(
            {
                "op": "call",
                "of": {"ref": function._number},
                "args": [self._encode(one) for one in args],
                "named": {name: self._encode(one) for name, one in named.items()},
            }
        )
        for place, after in reply.get("changed", []):
            _change(args[place], self._decode(after))
        return self._decode(reply.get("value"))

    def do(self, operation: str, *args: Any) -> Any:
        reply = self._answered({"op": operation, "args": [self._encode(one) for one in args]})
        return self._decode(reply.get("value"))

    def _answered(self, message: Encoded) -> dict[str, Any]:
        reply = cast("dict[str, Any]", self._ask(message))
        if "error" in reply:
            error = decode_error(reply["error"], self._errors)
            self._raised.append(error)
            raise error
        return reply

    def _run(self, number: int) -> Encoded:
        self._raised = []
        try:
            returned = self._cases[number]()
            if inspect.iscoroutine(returned):
                asyncio.run(returned)
        except ImportError as error:
            is_theirs = any(error is one for one in self._raised) or error.name in MODULES
            why = _described(error)
            return {"right": False, "why": why} if is_theirs else {"broken": why}
        except BaseException as error:
            return {"right": False, "why": _described(error)}
        return {"right": True, "why": ""}

    def _take(self, names: Any, entry: str | None) -> None:
        """The names that the program says it has. None may stand for a builtin or a module: a
        program with an `abs` would answer for itself.
        """
        found = {
            name: value
            for name, data in names.items()
            if name.isidentifier() and not name.startswith("__")
            if name == entry or data == {"module": name} or name not in self._own_names
            for value in self._named(name, data)
        }
        self._space.update(found)
        for name in MODULES:
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__dict__.update(found)
        if entry is not None and entry in found:
            self._space["candidate"] = found[entry]

    def _named(self, name: str, data: Encoded) -> list[Any]:
        """A name of the program as the tests see it; none if they cannot."""
        match data:
            case {"module": str(of)}:
                # From the standard library: the real one, not what the program made of it.
                top = of.partition(".")[0]
                return [importlib.import_module(of)] if top in sys.stdlib_module_names else []
            case {"exception": [_, *others]}:
                base = decode_error({"classes": others, "text": ""}, self._errors)
                kind = type(name, (type(base),), {})
                self._errors[name] = kind
                return [kind]
            case _:
                return [self._decode(data)]

    def _encode(self, value: Any) -> Encoded:
        return encode(value, self._put)

    def _put(self, value: Any) -> dict[str, Encoded]:
        if isinstance(value, Remote):
            return {"ref": value._number}
        return {"function": self._held.put(value)}

    def _decode(self, data: Encoded) -> Any:
        return decode(data, self._object)

    def _object(self, kind: str, number: Any) -> Any:
        if kind != "ref" or type(number) is not int:
            raise BadMessage(f"no {kind}")
        return Remote(self, number)


def _names_of(text: str) -> set[str]:
    """Builtins, and modules of the standard library that the text uses as modules."""
    dotted = {
        node.value.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return {*dir(builtins), *dotted.intersection(sys.stdlib_module_names)}


def _change(held: Any, after: Any) -> None:
    """As the program changed its copy."""
    if type(held) is not type(after) or type(held) not in (list, dict, set):
        raise BadMessage("no change")
    held.clear()
    grow = "extend" if hasattr(after, "extend") else "update"
    getattr(held, grow)(after)


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except BaseException:
        return type(error).__name__
