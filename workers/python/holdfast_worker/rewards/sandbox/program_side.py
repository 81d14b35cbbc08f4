"""Holds a program and does what the tests ask of it. This file runs inside of sandboxes, beside the
program: nothing that it says is believed.
"""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Callable
from typing import Any, cast

from holdfast_worker.rewards.sandbox.values import (
    BadMessage,
    Encoded,
    Held,
    decode,
    encode,
    encode_error,
)

NAME = "solution"
Ask = Callable[[Encoded], Encoded]  # Sends what the other side is asked, and gives its answer.


def _is_instance(kind: Any, value: Any) -> bool:
    return isinstance(value, kind)


def _is_subclass(kind: Any, value: Any) -> bool:
    return issubclass(value, kind)


def _enter(value: Any) -> Any:
    return value.__enter__()


def _exit(value: Any) -> Any:
    return value.__exit__(None, None, None)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "getattr": getattr,
    "setattr": setattr,
    "len": len,
    "bool": bool,
    "str": str,
    "repr": repr,
    "hash": hash,
    "iter": iter,
    "next": next,
    "int": int,
    "float": float,
    "abs": abs,
    "enter": _enter,
    "exit": _exit,
    "isinstance": _is_instance,
    "issubclass": _is_subclass,
    **{
        name: getattr(operator, name)
        for name in (
            *("eq", "ne", "lt", "le", "gt", "ge", "contains", "getitem", "setitem", "delitem"),
            *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "neg"),
            *("and_", "or_", "xor", "invert", "lshift", "rshift", "iadd"),
        )
    },
}


class ProgramSide:
    """`ask` is for functions of the tests that the program is given: it may call them."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._held = Held()
        self._module = types.ModuleType(NAME)

    def answer(self, message: Encoded) -> Encoded:
        """To one message; an error of the program is an answer too."""
        try:
            match message:
                case {"op": "load", "source": source}:
                    return {"names": self._load(source)}
                case {"op": "call", "of": of, "args": args, "named": named}:
                    return self._call(self._decode(of), args, named)
                case {"op": name, "args": args} if name in OPERATIONS:
                    values = [self._decode(one) for one in args]
                    return {"value": self._encode(OPERATIONS[name](*values))}
                case _:
                    raise BadMessage("no such operation")
        except BaseException as error:
            return {"error": encode_error(error)}

    def _load(self, source: str) -> dict[str, Encoded]:
        sys.modules[NAME] = self._module
        self._module.__dict__["__file__"] = f"{NAME}.py"
        exec(compile(source, f"{NAME}.py", "exec"), self._module.__dict__)
        found: dict[str, Encoded] = {}
        for name, value in list(self._module.__dict__.items()):
            if name.startswith("__"):
                continue
            if isinstance(value, types.ModuleType):
                found[name] = {"module": value.__name__}
            elif isinstance(value, type) and issubclass(value, BaseException):
                found[name] = {"exception": [kind.__name__ for kind in value.__mro__]}
            else:
                try:
                    found[name] = self._encode(value)
                except RecursionError:
                    continue
        return found

    def _call(self, function: Any, args: Any, named: Any) -> Encoded:
        """What it returned, and the arguments that it changed in place."""
        values = [self._decode(one) for one in args]
        keywords = {name: self._decode(one) for name, one in named.items()}
        value = self._encode(function(*values, **keywords))
        changed = [
            [place, after]
            for place, (before, one) in enumerate(zip(args, values, strict=True))
            if type(one) in (list, dict, set) and (after := self._encode(one)) != before
        ]
        return {"value": value, "changed": changed}

    def _encode(self, value: Any) -> Encoded:
        return encode(value, lambda one: {"ref": self._held.put(one)})

    def _decode(self, data: Encoded) -> Any:
        return decode(data, self._object)

    def _object(self, kind: str, number: Any) -> Any:
        if kind == "ref":
            return self._held.get(number)
        if kind != "function":
            raise BadMessage(f"no {kind}")

        def function(*args: Any) -> Any:
            encoded = [self._encode(one) for one in args]
            reply = cast("dict[str, Any]", self._ask({"call": number, "args": encoded}))
            if "error" in reply:
                raise RuntimeError("a function of the tests raised")
            return self._decode(reply.get("value"))

        return function
