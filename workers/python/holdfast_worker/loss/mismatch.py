"""
How far the trained policy is from the sampling policy: measured in every step, regardless of what
the loss reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast_worker.loss.micro_batch import MicroBatch
from holdfast_worker.operation import BadDataError
from holdfast_worker.wire.types import RatioBounds

BEHAVIOUR = "behaviour_logp"  # The column with the sampler's log-probability of each token.
# With v = log pi - log pi_behaviour of a token that pi_behaviour sampled.
NAMES = (
    "policy/mismatch_abs",  # mean |v|
    "policy/mismatch_kl",  # mean exp(v) - 1 - v: k3, an unbiased estimate of KL(pi_behaviour || pi)
    "policy/clip_ratio",  # the share of tokens whose ratio exp(v) is outside the clip
)

# Of mean |v| where the policy that trains is the one that sampled. Other kernels and bfloat16 stay
# far below it: docs/decisions/0056-one-model-in-a-run.md.
ON_POLICY_MAX = 0.5


def check_on_policy(metrics: Mapping[str, float]) -> None:
    """
    Raises BadDataError if the sampler and the trainer, at one version, disagree about the tokens
    that the sampler chose.
    """
    off = metrics.get(NAMES[0], 0.0)
    if off > ON_POLICY_MAX:
        raise BadDataError(
            "Cannot train on these samples because sampler and trainer compute different models: "
            "the log-probabilities of the sampled tokens differ by "
            f"{off:.3g} per token ({NAMES[0]}), more than {ON_POLICY_MAX}, and the version that "
            "trains is the one that sampled. No step was taken. Fix: use sampler.engine: "
            "huggingface, or sampler.dtype: float32"
        )


def mismatch(
    micro_batches: Sequence[MicroBatch],
    live: Sequence[Mapping[str, Tensor]],
    *,
    clip: RatioBounds,
    gather: Callable[[Any], list[Any]],
) -> dict[str, float]:
    """
    The three means over the step's trained tokens, over all ranks; costs no forward. `live`: of
    each micro-batch, the `logp` [B, T] that the step was taken with. `clip`: {low, high, ratio};
    the ratio stays within [1 - low, 1 + high], None is no bound, and `ratio` says whether a token
    has its own or its sequence's, exp(mean v). A mean that is not finite is left out.
    """
    mine: dict[int, list[float]] = {}  # By place in the step: tokens, then the sums of NAMES.
    for mb, values in zip(micro_batches, live, strict=True):
        mask = mb.mask.cpu().numpy()
        difference = (_float64(values["logp"]) - _float64(mb.columns[BEHAVIOUR]))[mask]
        ends = np.cumsum(mask.sum(-1)).tolist()
        for place, start, end in zip(mb.sequences, [0, *ends], ends):
            if place >= 0:
                mine[place] = _sums(difference[start:end], clip)
    everyone = {place: sums for rank in gather(mine) for place, sums in rank.items()}
    if not everyone:
        return {}
    n_tokens, *sums = (
        np.array([everyone[place] for place in sorted(everyone)], np.float64).sum(0).tolist()
    )
    means = {name: total / max(n_tokens, 1) for name, total in zip(NAMES, sums)}
    return {name: mean for name, mean in means.items() if math.isfinite(mean)}


def _float64(values: Tensor) -> np.ndarray:
    return values.detach().to("cpu", torch.float64).numpy()


def _sums(v: np.ndarray, clip: RatioBounds) -> list[float]:
    """
    Tokens of a sequence, and what it adds to each mean. They depend on the sequence alone, not on
    the cut.
    """
    if len(v) == 0:
        return [0.0] * (1 + len(NAMES))
    with np.errstate(all="ignore"):
        token = np.exp(v)
        ratio = token if clip.ratio == "token" else np.full_like(v, np.exp(v.mean()))
        low = -math.inf if clip.low is None else 1 - clip.low
        high = math.inf if clip.high is None else 1 + clip.high
        outside = (ratio < low) | (ratio > high)
        return [
            float(len(v)),
            float(np.abs(v).sum()),
            float((token - 1 - v).sum()),
            float(outside.sum()),
        ]
