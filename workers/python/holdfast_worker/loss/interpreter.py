"""A loss program on one padded micro-batch, in torch, so that autograd differentiates it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from holdfast_worker.loss.expression import LossExpression, Node

ELEMENTWISE: dict[str, Callable[..., Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "neg": torch.neg,
    "exp": torch.exp,
    "log": torch.log,
    "square": torch.square,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "sigmoid": torch.sigmoid,
    "logSigmoid": logsigmoid,
    "detach": torch.detach,
    "lt": lambda a, b: torch.lt(a, b).to(a.dtype),
    "le": lambda a, b: torch.le(a, b).to(a.dtype),
    "where": lambda c, a, b: torch.where(c != 0, a, b),
}


class MicroBatchValues:
    """
    Values of a program's nodes on one micro-batch: token [B, T], sequence [B], pair [B / 2].
    `read(name)` gives a raw input, `whole(node)` the value of a step node over the whole step.
    """

    def __init__(
        self,
        program: LossExpression,
        mask: Tensor,
        *,
        read: Callable[[str], Tensor],
        whole: Callable[[int], float],
        dtype: torch.dtype,
    ) -> None:
        self.program = program
        self.read = read
        self.whole = whole
        self.dtype = dtype
        self.masks = {"token": mask, "sequence": mask.any(-1)}
        if program.has_pairs:
            rows = self.masks["sequence"]
            self.masks["pair"] = rows[::2] & rows[1::2]
        self.memo: dict[int, Tensor] = {}

    def share(self) -> Tensor:
        """What this micro-batch adds to the loss, up to terms without gradient."""
        return self._share(self.program.root)

    def _share(self, i: int) -> Tensor:
        node = self.program.nodes[i]
        if node.op == "stepSum":
            arg = node.args[0]
            return torch.where(self.masks[self.program.nodes[arg].kind], self.value(arg), 0.0).sum()
        if node.op == "neg":
            return -self._share(node.args[0])
        if node.op in ("mul", "div"):
            factor, other = (
                node.args if not self.program.grad[node.args[0]] else reversed(node.args)
            )
            share = self._share(other)
            return share * self.whole(factor) if node.op == "mul" else share / self.whole(factor)
        if node.op == "where":
            taken = torch.tensor(self.whole(node.args[0]) != 0, device=self.masks["token"].device)
            return torch.where(taken, *(self._share_or_zero(arg) for arg in node.args[1:]))
        first, second = (self._share_or_zero(arg) for arg in node.args)
        return first + second if node.op == "add" else first - second

    def _share_or_zero(self, i: int) -> Tensor:
        if self.program.grad[i]:
            return self._share(i)
        return torch.zeros((), dtype=self.dtype, device=self.masks["token"].device)

    def value(self, i: int) -> Tensor:
        """A node's tensor. A step node is its whole value as a tensor without dimensions."""
        if self.program.nodes[i].kind == "step":
            return self._scalar(i)
        for j in self.program.below([i], leaf=self._is_step) if i not in self.memo else ():
            if j not in self.memo and not self._is_step(j):
                self.memo[j] = self._compute(self.program.nodes[j])
        return self.memo[i]

    def _is_step(self, i: int) -> bool:
        return self.program.nodes[i].kind == "step"

    def _scalar(self, i: int) -> Tensor:
        return torch.full((), self.whole(i), dtype=self.dtype, device=self.masks["token"].device)

    def _compute(self, node: Node) -> Tensor:
        if node.op == "input":
            return self._input(node)
        if node.op in ("perSequenceSum", "perSequenceMean"):
            sums = torch.where(self.masks["token"], self.memo[node.args[0]], 0.0).sum(-1)
            return (
                sums
                if node.op == "perSequenceSum"
                else sums / self.masks["token"].sum(-1).clamp(min=1)
            )
        if node.op in ("chosen", "rejected"):
            return self.memo[node.args[0]][0 if node.op == "chosen" else 1 :: 2]
        args = [self._as(node, arg) for arg in node.args]
        if node.op == "clamp":
            return (
                args[0]
                if node.lo is None and node.hi is None
                else torch.clamp(args[0], node.lo, node.hi)
            )
        return ELEMENTWISE[node.op](*args)

    def _input(self, node: Node) -> Tensor:
        """
        0 at masked positions, before any operation: masked content can reach no value and no
        gradient.
        """
        raw = self.read(node.name).to(self.dtype)
        value = torch.where(self.masks[node.kind], raw, 0.0)
        return value.detach() if node.frozen else value

    def _as(self, node: Node, arg: int) -> Tensor:
        kind = self.program.nodes[arg].kind
        if kind == "step":
            return self._scalar(arg)
        value = self.memo[arg]
        if kind == "sequence" and node.kind == "token":
            # Masked again: a gradient that is not finite at a masked token must not reach the
            # sequence's value.
            return torch.where(self.masks["token"], value.unsqueeze(-1), 0.0)
        return value

    def first_not_finite(self) -> tuple[int, tuple[int, ...]] | None:
        """
        The first node, in computing order, with a value that is not finite, and the place of that
        value.
        """
        self.share()
        for i in sorted(self.memo):
            bad = ~torch.isfinite(self.memo[i]) & self.masks[self.program.nodes[i].kind]
            if bool(bad.any()):
                return i, tuple(int(x) for x in bad.nonzero()[0])
        return None

    def largest(self) -> tuple[float, int, tuple[int, ...]]:
        """The largest size of a value, the first node that has it, and its place there."""
        self.share()
        sizes = {
            i: torch.where(self.masks[self.program.nodes[i].kind], self.memo[i].abs(), 0.0)
            for i in self.memo
        }
        node = max(sorted(sizes), key=lambda i: float(sizes[i].max()))
        place = torch.unravel_index(sizes[node].argmax(), sizes[node].shape)
        return float(sizes[node].max()), node, tuple(int(x) for x in place)
