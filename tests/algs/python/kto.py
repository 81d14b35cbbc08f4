"""Kahneman-Tversky optimisation of single completions, as the table's `kto`."""

from dataclasses import dataclass

import torch


@dataclass
class Config:
    beta: float = 0.1
    desirable_weight: float = 1.0
    undesirable_weight: float = 1.0


MISMATCHED = True
EXAMPLES = [{"beta": 0.5, "desirable_weight": 1.33}, {"undesirable_weight": 2.0}]


def statistics(x, c):
    ratio = x.per_sequence_sum(x.logp - x.ref_logp)  # [B]
    other = (x.label == 0).to(ratio.dtype)
    good = (x.label > 0).to(ratio.dtype)
    bad = (x.label < 0).to(ratio.dtype)
    return {
        "mismatched": other,
        "mismatched_ratio": other * ratio,
        "good": good,
        "good_ratio": good * ratio,
        "bad": bad,
        "bad_ratio": bad * ratio,
    }


def loss(x, c, s):
    kl = (s.mismatched_ratio / s.mismatched.clamp(min=1)).clamp(min=0)
    rows = s.good + s.bad
    ratio = x.per_sequence_sum(x.logp - x.ref_logp)  # [B]
    gain = x.label * (ratio - kl)  # [B]
    good, bad = ((x.label * sign > 0).to(ratio.dtype) for sign in (1, -1))  # [B]
    weight = good * c.desirable_weight + bad * c.undesirable_weight  # [B]
    right = (gain > 0).to(ratio.dtype)
    chosen = c.beta * s.good_ratio / s.good.clamp(min=1)
    rejected = c.beta * s.bad_ratio / s.bad.clamp(min=1)
    return {
        "loss": ("sum", weight * (1 - torch.sigmoid(c.beta * gain)) / rows),
        "metrics": {
            "reward/accuracy": ("sum", right / rows),
            "reward/margin": chosen - rejected,
            "reward/chosen": chosen,
            "reward/rejected": rejected,
        },
    }
