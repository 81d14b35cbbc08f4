"""Loss expressions written node by node, as the tracer would record them."""

from __future__ import annotations

from typing import Any

KINDS = {
    "score": "sequence",
    "length": "sequence",
    "staleness": "sequence",
    "label": "sequence",
    "margin": "pair",
}
RESULTS = {
    "perSequenceSum": "sequence",
    "perSequenceMean": "sequence",
    "chosen": "pair",
    "rejected": "pair",
    "stepSum": "step",
}
FINENESS = ("step", "pair", "sequence", "token")


class Nodes:
    """`nodes("exp", nodes.input("logp"))` appends a node and gives its index."""

    def __init__(self) -> None:
        self.list: list[dict[str, Any]] = []

    def __call__(self, op: str, *args: int, **fields: Any) -> int:
        finest = max((self.list[arg]["kind"] for arg in args), key=FINENESS.index, default="step")
        self.list.append({"op": op, "kind": RESULTS.get(op, finest), "args": list(args), **fields})
        return len(self.list) - 1

    def input(self, name: str) -> int:
        kind = "step" if name.startswith(("n_", "coef.")) else KINDS.get(name, "token")
        self.list.append({"op": "input", "kind": kind, "name": name})
        return len(self.list) - 1

    def scalar(self, value: float) -> int:
        self.list.append({"op": "scalar", "kind": "step", "value": value})
        return len(self.list) - 1

    def expression(self, loss: int, **metrics: int) -> dict[str, Any]:
        inputs = sorted({node["name"] for node in self.list if node["op"] == "input"})
        return {
            "version": 1,
            "inputs": inputs,
            "nodes": self.list,
            "loss": loss,
            "metrics": metrics,
        }


def likelihood() -> dict[str, Any]:
    """-mean logp over the step's tokens."""
    n = Nodes()
    return n.expression(n("div", n("stepSum", n("neg", n.input("logp"))), n.input("n_tokens")))


def clipped(low: float = 0.8, high: float = 1.2) -> dict[str, Any]:
    """The summed PPO objective."""
    n = Nodes()
    ratio = n("exp", n("sub", n.input("logp"), n.input("old_logp")))
    advantage = n.input("advantage")
    smaller = n(
        "minimum",
        n("mul", ratio, advantage),
        n("mul", n("clamp", ratio, lo=low, hi=high), advantage),
    )
    return n.expression(n("stepSum", n("neg", smaller)))


def effective_sample_size() -> dict[str, Any]:
    """A live statistic of the whole step weighs each token."""
    n = Nodes()
    logp = n.input("logp")
    w = n("exp", n("sub", logp, n.input("behaviour_logp")))
    tokens = n.input("n_tokens")
    ess = n(
        "detach",
        n("div", n("square", n("stepSum", w)), n("mul", n("stepSum", n("square", w)), tokens)),
    )
    loss = n(
        "div", n("stepSum", n("neg", n("mul", n("detach", n("minimum", w, ess)), logp))), tokens
    )
    return n.expression(loss, **{"policy/ess": ess})


def preference(beta: float = 0.1) -> dict[str, Any]:
    """
    DPO: -log sigmoid of beta times how much more the chosen side gained on the reference than the
    rejected one.
    """
    n = Nodes()
    gain = n("perSequenceSum", n("sub", n.input("logp"), n.input("ref_logp")))
    gap = n("mul", n("sub", n("chosen", gain), n("rejected", gain)), n.scalar(beta))
    return _pairwise(n, gap, gap)


def labelled(beta: float = 0.1) -> dict[str, Any]:
    """
    KTO: one minus the sigmoid of beta times how far a completion's gain on the reference is on its
    label's side of z_0, the mean gain of the mismatched ones, at least 0.
    """
    n = Nodes()
    label = n.input("label")
    rows = n("square", label)
    mismatched = n("sub", n.scalar(1.0), rows)
    gain = n("perSequenceSum", n("sub", n.input("logp"), n.input("ref_logp")))
    mean = n("div", n("stepSum", n("mul", gain, mismatched)), n("stepSum", mismatched))
    kl = n("detach", n("maximum", mean, n.scalar(0.0)))
    side = n("mul", n("sub", gain, kl), label)
    value = n("sigmoid", n("mul", side, n.scalar(beta)))
    losses = n("mul", n("sub", n.scalar(1.0), value), rows)
    count = n("stepSum", rows)
    return n.expression(
        n("div", n("stepSum", losses), count),
        **{
            "reward/accuracy": n("div", n("stepSum", n("lt", n.scalar(0.0), side)), count),
            "policy/kl_ref": kl,
        },
    )


def comparison() -> dict[str, Any]:
    """
    A reward model: -log sigmoid of the chosen side's score less the rejected one's less the margin.
    """
    n = Nodes()
    score = n.input("score")
    gap = n("sub", n("chosen", score), n("rejected", score))
    return _pairwise(n, n("sub", gap, n.input("margin")), gap)


def _pairwise(n: Nodes, compared: int, gap: int) -> dict[str, Any]:
    pairs = n.input("n_pairs")
    mean = lambda node: n("div", n("stepSum", node), pairs)  # noqa: E731
    loss = mean(n("neg", n("logSigmoid", compared)))
    accuracy = mean(n("lt", n.scalar(0.0), gap))
    return n.expression(loss, **{"reward/accuracy": accuracy, "reward/margin": mean(gap)})
