"""A reward model from pairs, as the table's `reward_model`."""

from dataclasses import dataclass

import torch.nn.functional as F


@dataclass
class Config:
    center_coef: float = 0.0  # Keeps scores near 0.


EXAMPLES = [{"center_coef": 0.01}]


def loss(x, c):
    gap = x.chosen(x.score) - x.rejected(x.score)  # [B / 2]
    middle = x.chosen(x.score) + x.rejected(x.score)  # [B / 2]
    return {
        "loss": ("pair_mean", -F.logsigmoid(gap - x.margin) + c.center_coef * middle**2),
        "metrics": {
            "reward/accuracy": ("pair_mean", (gap > 0).to(gap.dtype)),
            "reward/margin": ("pair_mean", gap),
        },
    }
