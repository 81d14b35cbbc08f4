"""Whole-step values in float64 over ragged data: statistics, the reported loss and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast_worker.loss.expression import LossExpression, Node

Value = Any  # token [n], sequence [S], pair [P] float64, or one float


def _log_sigmoid(x: Value) -> Value:
    return -np.logaddexp(0.0, -x)


ELEMENTWISE: dict[str, Callable[..., Value]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "exp": np.exp,
    "log": np.log,
    "square": np.square,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "sigmoid": lambda x: np.exp(_log_sigmoid(x)),
    "logSigmoid": _log_sigmoid,
    "detach": lambda x: x,
    "lt": lambda a, b: np.less(a, b) * 1.0,
    "le": lambda a, b: np.less_equal(a, b) * 1.0,
    "where": lambda c, a, b: np.where(np.not_equal(c, 0), a, b),
}


@dataclass
class RaggedStep:
    """
    One rank's sequences of a step without fillers: n unmasked tokens of S sequences, one after the
    other, without masked tokens. Values depend on the sequence alone, so their bits do not depend
    on how a step is split.
    """

    places: list[int]  # [S] place in the step's batch order
    lengths: np.ndarray  # [S]
    positions: np.ndarray  # [n] place of the token in its row
    inputs: dict[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.owner = np.repeat(np.arange(len(self.places)), self.lengths)  # [n]
        ends = np.cumsum(self.lengths)
        self.spans = list(zip((ends - self.lengths).tolist(), ends.tolist()))

    def per_sequence(self, tokens: np.ndarray) -> np.ndarray:
        """[n] -> [S]: each sum runs over its own sequence's values only."""
        return np.array([tokens[start:end].sum() for start, end in self.spans], np.float64)

    def parts(self, kind: str, value: Value) -> dict[int, float]:
        """
        What each sequence, or pair, adds to a sum over the step, by place. An empty sequence adds
        nothing.
        """
        full = self.lengths > 0
        if kind == "token":
            sums = self.per_sequence(value)
        elif kind == "sequence":
            sums = np.where(full, value, 0.0)
        else:
            sums = np.zeros(len(self.places))
            sums[::2] = np.where(full[::2] & full[1::2], value, 0.0)
        return dict(zip(self.places, sums.tolist()))


class StepValues:
    """
    Values of a program's nodes over one whole step. Sums over the step are resolved over all ranks,
    once.
    """

    def __init__(
        self, program: LossExpression, data: RaggedStep, gather: Callable[[Any], list[Any]]
    ) -> None:
        self.program = program
        self.data = data
        self.gather = gather
        self.memo: dict[int, Value] = {}
        self.sums: dict[int, float] = {}

    def resolve(self, sums: Sequence[int]) -> None:
        """
        Computes the given `stepSum`s, and those below them first. All ranks call it with the same
        list.
        """
        nodes = self.program.nodes
        waiting = [i for i in self.program.sums_under(sums) if i not in self.sums]
        while waiting:
            ready = [i for i in waiting if not self._blocked(i)]
            mine = {
                i: self.data.parts(nodes[nodes[i].args[0]].kind, self._spread(i)) for i in ready
            }
            everyone = self.gather(mine)
            for i in ready:
                parts = {place: part for rank in everyone for place, part in rank[i].items()}
                self.sums[i] = float(
                    np.array([parts[place] for place in sorted(parts)], np.float64).sum()
                )
            waiting = [i for i in waiting if i not in self.sums]

    def _blocked(self, i: int) -> bool:
        below = self.program.sums_under(self.program.nodes[i].args)
        return any(other not in self.sums for other in below)

    def _spread(self, i: int) -> Value:
        """The summed operand of `stepSum` i."""
        return self.value(self.program.nodes[i].args[0])

    def value(self, i: int) -> Value:
        """A node's value; its sums must be resolved."""
        with np.errstate(all="ignore"):
            for j in self.program.below([i], leaf=self._known) if i not in self.memo else ():
                if j not in self.memo:
                    self.memo[j] = self._compute(j)
        return self.memo[i]

    def _known(self, i: int) -> bool:
        return i in self.memo or i in self.sums

    def first_not_finite(self) -> tuple[int, int | None, int | None] | None:
        """
        (node, sequence, token) of the first value that is not finite among those computed so far.
        """
        for i in sorted(self.memo):
            bad = np.flatnonzero(~np.isfinite(self.memo[i]))
            kind = self.program.nodes[i].kind
            if len(bad) and kind == "step":
                return i, None, None
            if len(bad) and kind == "token":
                return (
                    i,
                    self.data.places[self.data.owner[bad[0]]],
                    int(self.data.positions[bad[0]]),
                )
            if len(bad):
                return i, self.data.places[bad[0] * (2 if kind == "pair" else 1)], None
        return None

    def _compute(self, i: int) -> Value:
        node = self.program.nodes[i]
        if node.op == "input":
            return self.data.inputs[node.name]
        if node.op == "scalar":
            return node.value
        if node.op == "stepSum":
            return self.sums[i]
        if node.op in ("perSequenceSum", "perSequenceMean"):
            sums = self.data.per_sequence(self.memo[node.args[0]])
            return sums if node.op == "perSequenceSum" else sums / np.maximum(self.data.lengths, 1)
        if node.op in ("chosen", "rejected"):
            return self.memo[node.args[0]][0 if node.op == "chosen" else 1 :: 2]
        args = [self._as(node, arg) for arg in node.args]
        if node.op == "clamp":
            return np.clip(
                args[0],
                -np.inf if node.lo is None else node.lo,
                np.inf if node.hi is None else node.hi,
            )
        return ELEMENTWISE[node.op](*args)

    def _as(self, node: Node, arg: int) -> Value:
        value = self.memo[arg]
        if node.kind == "token" and self.program.nodes[arg].kind == "sequence":
            return value[self.data.owner]
        return value


def ragged(rows: Iterable[tuple[int, np.ndarray]]) -> RaggedStep:
    """From (place, mask [T]) of a rank's rows; rows with place -1 are fillers and left out."""
    kept = [(place, np.flatnonzero(mask)) for place, mask in rows if place >= 0]
    positions = [where for _, where in kept]
    return RaggedStep(
        places=[place for place, _ in kept],
        lengths=np.array([len(where) for where in positions], np.int64),
        positions=np.concatenate([np.zeros(0, np.int64), *positions]),
    )
