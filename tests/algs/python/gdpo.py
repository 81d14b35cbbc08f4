"""GDPO as `algs/gdpo.ts` has it, with the KL in the loss."""

from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class Config:
    clip_low: float = 0.2
    clip_high: float = 0.2
    dual_clip: float | None = None
    std_epsilon: float = 1e-6
    kl_coef: float = 0.0


GROUP_MIN = 2
EXAMPLES = [{"clip_low": 0.1, "clip_high": 0.3, "dual_clip": 1.5}, {"kl_coef": 0.04}]


def credit(round, c):
    total = np.zeros(len(round))  # [N]
    for part in round.parts:
        applies = ~np.isnan(part.paid)
        for group in np.unique(round.group):
            members = applies & (round.group == group)
            paid = part.paid[members]
            if len(paid) > 1 and np.ptp(paid) > 0:
                z = (paid - paid.mean()) / (paid.std(ddof=1) + c.std_epsilon)
                total[members] += part.weight * z
    squares = np.square(total).sum()
    if squares > 0:
        total = total / (np.sqrt(squares / (len(total) - 1)) + c.std_epsilon)
    return {"advantage": total}


def loss(x, c):
    ratio = (x.logp - x.old_logp).exp()  # [B, T]
    clipped = ratio.clamp(1 - c.clip_low, 1 + c.clip_high)
    policy = -torch.minimum(ratio * x.advantage, clipped * x.advantage)
    if c.dual_clip is not None:
        policy = torch.where(
            x.advantage < 0, torch.minimum(policy, -c.dual_clip * x.advantage), policy
        )
    if c.kl_coef > 0:
        d = x.ref_logp - x.logp
        policy = policy + c.kl_coef * (d.exp() - 1 - d)
    left = (ratio < 1 - c.clip_low) | (ratio > 1 + c.clip_high)
    metrics = {"policy/clip_fraction": ("token_mean", left.to(ratio.dtype))}
    return {"loss": ("sequence_mean", x.per_sequence_mean(policy)), "metrics": metrics}
