"""
What the measures read of Python files: paths on stdin, one a line; one JSON object a line on
stdout, as `SourceModule` has it.
"""

import ast
import json
import sys


def spans(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield {"name": node.name, "line": first, "lines": node.end_lineno - first + 1}


def packages(dotted, package):
    """
    Those around a module: an import runs them first, but for those that the importing module is in
    itself.
    """
    inside = f".{'.'.join(package)}."
    parts = dotted.split(".")
    around = [".".join(parts[:i]) for i in range(1, len(parts))]
    return [name for name in around if f".{name}." not in inside]


def imported(tree, package):
    """
    Dotted names: every module that an import may lead to, as `from a import b` may name the module
    `a.b`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from packages(alias.name, package)
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from packages(base, package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


for path in sys.stdin.read().split("\n"):
    if path == "":
        continue
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    parts = path.removesuffix(".py").split("/")
    package = parts if parts[-1] == "__init__" else parts[:-1]
    package = [part for part in package if part != "__init__"]
    print(
        json.dumps(
            {
                "path": path,
                "imports": sorted(set(imported(tree, package))),
                "functions": list(spans(tree)),
            }
        )
    )
