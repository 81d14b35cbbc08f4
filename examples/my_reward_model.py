"""A reward model with a hinge: a pair costs nothing once its chosen side is `gap_min` ahead.

    deno task rl run configs/algorithms/reward_model.yaml algorithm=examples/my_reward_model.py

A row's margin is added to `gap_min`.
"""

from dataclasses import dataclass


@dataclass
class Config:
    gap_min: float = 1.0


PROFILES = {"strict": {"gap_min": 4.0}}
EXAMPLES = [{"gap_min": 0.5}]


def loss(x, c):
    gap = x.chosen(x.score) - x.rejected(x.score)  # [B / 2]
    return {
        "loss": ("pair_mean", (c.gap_min + x.margin - gap).clamp(min=0)),
        "metrics": {
            "reward/accuracy": ("pair_mean", (gap > 0).float()),
            "reward/margin": ("pair_mean", gap),
        },
    }
