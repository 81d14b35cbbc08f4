"""A custom algorithm: SAPO, soft adaptive policy optimisation, arXiv:2511.20347.

A sigmoid takes the place of the clip. `my_algorithm.ts` beside it is the same in TypeScript.

    deno task rl run configs/quickstart.yaml algorithm=examples/my_algorithm.py
"""

from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class Config:
    tau_positive: float = 1.0  # How fast tokens of a good sample lose their gradient.
    tau_negative: float = 1.05  # How fast those of a bad sample do.
    std_epsilon: float = 1e-6  # Added to a group's standard deviation.


GROUP_MIN = 2
EXAMPLES = [
    {"tau_positive": 0.5, "tau_negative": 2.0}
]  # Settings that the property tests try besides the defaults.


def credit(round, c):
    """The z-score of each reward in its group: [N] -> [N]."""
    advantage = np.zeros(len(round))
    for group in np.unique(round.group):
        members = round.group == group
        reward = round.reward[members]
        if np.ptp(reward) > 0:
            advantage[members] = (reward - reward.mean()) / (reward.std(ddof=1) + c.std_epsilon)
    return {"advantage": advantage}


def loss(x, c):
    ratio = (x.logp - x.old_logp).exp()  # [B, T]
    tau = torch.full_like(ratio, c.tau_positive).masked_fill(
        x.advantage < 0, c.tau_negative
    )  # [B, T]
    soft = 4 / tau * torch.sigmoid(tau * (ratio - 1))  # [B, T]
    return {
        "loss": ("sequence_mean", x.per_sequence_mean(-soft * x.advantage)),
        "metrics": {"policy/ratio": ("token_mean", ratio)},
    }
