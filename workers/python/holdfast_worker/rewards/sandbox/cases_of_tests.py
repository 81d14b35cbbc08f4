"""Which cases a text of tests has. Read without running it: what runs may ask the program, and
then a failure is the program's. This file runs inside of a sandbox.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

Case = Callable[[], Any]
Space = dict[str, Any]


def cases_of(setup: str, tests: Sequence[str], *, entry: str | None, space: Space) -> list[Case]:
    """The `check` function is one case. Else test functions and the methods of unittest's classes
    are cases; else each assert outside of all functions, after the statements before it. Raises
    SyntaxError, and ValueError if there is none.
    """
    prepared = _once(setup, space)
    cases = [case for text in tests for case in _of_text(text, entry, space)]
    if not cases:
        raise ValueError("the tests have no case")
    return [_after(prepared, case) for case in cases]


def _of_text(text: str, entry: str | None, space: Space) -> list[Case]:
    tree = ast.parse(text)
    prepared = _once(text, space)
    functions = [
        node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    if any(node.name == "check" for node in functions):
        return [_after(prepared, _check(tree, entry, space))]
    tests = [_function(node, space) for node in functions if node.name.startswith("test")]
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            tests += _of_class(node, space)
    return [_after(prepared, test) for test in tests] or _of_statements(tree, space)


def _once(text: str, space: Space) -> Case:
    """Runs the text for the first case; what it raised then is raised for each."""
    code = compile(text, "tests.py", "exec")
    done: list[BaseException | None] = []

    def run() -> None:
        if not done:
            try:
                exec(code, space)
                done.append(None)
            except BaseException as error:
                done.append(error)
        if done[0] is not None:
            raise done[0]

    return run


def _after(prepared: Case, case: Case) -> Case:
    def run() -> Any:
        prepared()
        return case()

    return run


def _check(tree: ast.Module, entry: str | None, space: Space) -> Case:
    """The text may call it itself."""
    called = [node.value for node in tree.body if isinstance(node, ast.Expr)]
    names = [one.func for one in called if isinstance(one, ast.Call)]
    if any(isinstance(name, ast.Name) and name.id == "check" for name in names):
        return lambda: None
    if entry is None:
        raise ValueError("`check` needs the column entry_point, the name of the function to check")
    return lambda: space["check"](space[entry])


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, space: Space) -> Case:
    required = len(node.args.args) - len(node.args.defaults)
    if required > 0 or node.decorator_list:
        raise ValueError(f"{node.name} needs pytest: it has parameters or decorators")
    return lambda: space[node.name]()  # noqa: PLW0108 - it is defined later.


def _of_class(node: ast.ClassDef, space: Space) -> list[Case]:
    names = [
        one.name
        for one in node.body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test")
    ]
    bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
    if "TestCase" in bases:
        return [_method(node.name, name, space) for name in names]
    return [_plain_method(node.name, name, space) for name in names] if "Test" in node.name else []


def _method(kind: str, name: str, space: Space) -> Case:
    return lambda: space[kind](name).debug()


def _plain_method(kind: str, name: str, space: Space) -> Case:
    return lambda: getattr(space[kind](), name)()  # noqa: PLW0108 - as above.


def _of_statements(tree: ast.Module, space: Space) -> list[Case]:
    cases: list[Case] = []
    body: list[ast.stmt] = []
    for node in tree.body:
        body.append(node)
        if isinstance(node, ast.Assert):
            cases.append(_statements(body, space))
            body = []
    return cases


def _statements(body: list[ast.stmt], space: Space) -> Case:
    code = compile(ast.Module(body, []), "tests.py", "exec")
    return lambda: exec(code, space)
