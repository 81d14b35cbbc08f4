"""
The learning rate over optimizer steps: lr * factor(step). Its whole state is the number of steps
done.
"""

from __future__ import annotations

import math

from holdfast_worker.wire.types import Schedule


def check_schedule(schedule: Schedule) -> None:
    """Raises ValueError if a schedule lacks what its name requires."""
    name, total = schedule.name, schedule.total_steps
    warmup, stable = schedule.warmup_steps, schedule.stable_steps
    if name not in ("constant", "linear", "cosine"):
        raise ValueError(
            f"Cannot make a schedule because its name is '{name}': use constant, linear or cosine"
        )
    if name == "constant":
        return
    if total is None:
        raise ValueError(
            f"Cannot make a {name} schedule because total_steps is null: set it to the run's "
            "optimizer steps"
        )
    if total <= warmup + stable:
        raise ValueError(
            f"Cannot make a {name} schedule because total_steps is {total}, warmup_steps {warmup} "
            f"and stable_steps {stable}: total_steps must be larger than both together"
        )


def factor(schedule: Schedule, step: int) -> float:
    """
    The factor of optimizer step `step`, counted from 0. Warm-up rises linearly and reaches 1 at its
    last step, so that no step has the factor 0. After `total_steps` it stays at `min_ratio`. With
    `stable_steps` it is warmup-stable-decay (Hu et al. 2024, arXiv:2404.06395, section 4).
    """
    warmup = schedule.warmup_steps
    if step < warmup:
        return (step + 1) / warmup
    total = schedule.total_steps
    if schedule.name == "constant" or total is None:
        return 1.0
    from_step = warmup + schedule.stable_steps
    if step < from_step:
        return 1.0
    done = min((step - from_step) / (total - from_step), 1.0)
    shape = 1.0 - done if schedule.name == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
    return schedule.min_ratio + (1.0 - schedule.min_ratio) * shape
