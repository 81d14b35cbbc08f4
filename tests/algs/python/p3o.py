"""P3O as `algs/p3o.ts` has it: the effective sample size over the whole optimizer step."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch


@dataclass
class Config:
    pull: Literal["k3", "forward"] = "k3"
    std_epsilon: float = 1e-6


GROUP_MIN = 2
EXAMPLES = [{"pull": "forward"}]


def credit(round, c):
    advantage = np.zeros(len(round))
    for group in np.unique(round.group):
        members = round.group == group
        reward = round.reward[members]
        if np.ptp(reward) > 0:  # Else 0, exactly: a rounded mean must not make a signal.
            advantage[members] = (reward - reward.mean()) / (reward.std(ddof=1) + c.std_epsilon)
    return {"advantage": advantage}


def statistics(x, c):
    w = (x.logp - x.behaviour_logp).clamp(-20, 20).exp()  # [B, T]
    return {"w": w, "w2": w.square()}


def loss(x, c, s):
    ess = s.w**2 / (s.w2 * x.n_tokens)  # []
    d = x.logp - x.behaviour_logp  # [B, T]
    log_w = d.clamp(-20, 20)
    w = log_w.exp()
    score = -torch.minimum(w, ess).detach() * x.advantage * x.logp
    pull = (-d).exp() - 1 + d if c.pull == "k3" else w - 1 - log_w
    return {"loss": ("token_mean", score + (1 - ess) * pull), "metrics": {"policy/ess": ess}}
