"""
Steps that no rank took because their loss or gradient norm was not finite, and how they are
reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from holdfast_worker.trainer.engines.engine import NonFiniteError
from holdfast_worker.wire.answers import SkippedStep

if TYPE_CHECKING:
    from holdfast_worker.loss import Culprit  # Imports torch, which must wait for `boot`.

WHAT = {
    "loss": "the loss is not finite: first at",
    "grad_norm": "the gradient norm is not finite: steepest at",
}


def skipped_at(cause: Literal["loss", "grad_norm"], culprit: Culprit | None) -> SkippedStep:
    """What was not finite, and the node, sequence and token that it came from."""
    if culprit is None:
        return {"cause": cause, "node": None, "sequence": None, "token": None}
    node = culprit.text if culprit.node < 0 else f"{culprit.node} ({culprit.text})"
    return {"cause": cause, "node": node, "sequence": culprit.sequence, "token": culprit.token}


def place_of(skipped: SkippedStep) -> str:
    """Node, sequence and token, as far as they are known."""
    places = [(name, skipped[name]) for name in ("node", "sequence", "token")]
    return (
        ", ".join(f"{name} {value}" for name, value in places if value is not None)
        or "an unknown node"
    )


def too_many(count: int, skipped: SkippedStep) -> NonFiniteError:
    """The error after too many consecutive skipped steps; `skipped` is that of the last one."""
    return NonFiniteError(
        f"Cannot step because {WHAT[skipped['cause']]} {place_of(skipped)} of the step. "
        f"{count} consecutive step(s) were skipped, the maximum of trainer.non_finite_max"
    )
