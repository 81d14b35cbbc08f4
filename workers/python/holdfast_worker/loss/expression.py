"""A recorded loss expression, read and analysed. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# Computed by the policy or value model while it is trained.
LIVE = frozenset({"logp", "entropy", "values", "score"})
# Known from the masks alone.
COUNTS = frozenset({"n_tokens", "n_sequences", "n_groups", "n_pairs"})
LENGTHS = frozenset({"length", "group_length"})
# lt and le are steps: no gradient passes.
STOPS = frozenset({"detach", "lt", "le"})


@dataclass(frozen=True)
class Node:
    """One operation. `frozen`: an input that is read without gradient."""

    op: str
    kind: str
    args: tuple[int, ...] = ()
    name: str = ""
    value: float = 0.0
    lo: float | None = None
    hi: float | None = None
    frozen: bool = False


class LossExpression:
    """
    A loss expression. `inputs` is what it reads; `live` and `columns` split what the model computes
    from what the batch brings. With `old_is_current` the batch serves one step of the version that
    sampled it: `old_logp` is then read as `logp.detach()` and needs no column.
    """

    def __init__(self, expression: Mapping[str, Any], old_is_current: bool = False) -> None:
        if expression.get("version") != 1:
            raise ValueError(
                f"Cannot read a loss expression of version {expression.get('version')!r}: this "
                "worker reads 1"
            )
        self.nodes = [_read(node, old_is_current) for node in expression["nodes"]]
        self.root: int = expression["loss"]
        self.metrics: dict[str, int] = dict(expression["metrics"])
        self.inputs = {node.name for node in self.nodes if node.op == "input"}
        self.live = self.inputs & LIVE
        self.coef = {name for name in self.inputs if name.startswith("coef.")}
        self.columns = self.inputs - LIVE - COUNTS - LENGTHS - self.coef
        self.has_pairs = any(node.kind == "pair" for node in self.nodes)
        self.varies, self.grad = self._flows()
        if not self.grad[self.root]:
            raise ValueError(
                "Cannot train on this loss because no gradient flows from it to the model"
            )
        self.statistics = self.sums_under(self._factors(self.root))
        self.live_statistics = any(self.varies[i] for i in self.statistics)

    def _flows(self) -> tuple[list[bool], list[bool]]:
        """
        Per node: does its value depend on the live model; does gradient flow from it to the model.
        """
        varies: list[bool] = []
        grad: list[bool] = []
        for node in self.nodes:
            live = node.op == "input" and node.name in LIVE
            varies.append(live or any(varies[arg] for arg in node.args))
            passing = node.args[1:] if node.op == "where" else node.args
            grad.append(
                node.op not in STOPS
                and ((live and not node.frozen) or any(grad[arg] for arg in passing))
            )
        return varies, grad

    def _factors(self, i: int) -> set[int]:
        """Nodes below the loss whose value over the whole step is needed before the gradient."""
        node = self.nodes[i]
        if not self.grad[i]:
            return set()
        if node.op == "stepSum":
            return {node.args[0]}
        if node.op in ("add", "sub", "neg"):
            return set[int]().union(*(self._factors(arg) for arg in node.args))
        if node.op == "where" and not self.grad[node.args[0]]:
            return {node.args[0]} | self._factors(node.args[1]) | self._factors(node.args[2])
        if node.op == "div" and not self.grad[node.args[1]]:
            return {node.args[1]} | self._factors(node.args[0])
        if node.op == "mul" and not all(self.grad[arg] for arg in node.args):
            return {arg for arg in node.args if not self.grad[arg]}.union(
                *(self._factors(arg) for arg in node.args)
            )
        raise ValueError(
            f"Cannot train on this loss because node {i} ({node.op}) is not linear in its sums "
            "over the step"
        )

    def below(
        self, roots: Iterable[int], leaf: Callable[[int], bool] = lambda i: False
    ) -> list[int]:
        """
        The nodes that `roots` need, themselves included, in an order in which they can be computed.
        What a `leaf` reads is omitted.
        """
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            i = stack.pop()
            if i not in seen:
                seen.add(i)
                stack.extend(() if leaf(i) else self.nodes[i].args)
        return sorted(seen)

    def sums_under(self, roots: Iterable[int]) -> list[int]:
        """The `stepSum`s that `roots` need."""
        return [i for i in self.below(roots) if self.nodes[i].op == "stepSum"]

    def describe(self, i: int) -> str:
        """A node as a short text for errors."""
        node = self.nodes[i]
        if node.op == "input":
            return node.name
        if node.op == "scalar":
            return repr(node.value)
        return f"{node.op}({', '.join(self._short(arg) for arg in node.args)})"

    def _short(self, i: int) -> str:
        node = self.nodes[i]
        return f"{node.op}(...)" if node.args else self.describe(i)


def _read(node: Mapping[str, Any], old_is_current: bool) -> Node:
    fields: dict[str, Any] = {**node, "args": tuple(node.get("args", ()))}
    if old_is_current and node.get("name") == "old_logp":
        fields.update(name="logp", frozen=True)
    return Node(**fields)
