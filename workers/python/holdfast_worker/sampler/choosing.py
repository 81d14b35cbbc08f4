"""From logits to a token: the sampling distribution, and the draw from it by inverse CDF."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from holdfast_worker.wire.types import Sampling

REFUSED = float("-inf")
BLOCK = 256  # Tokens whose probabilities are summed before those of one block are cumulated.


def log_distribution(logits: Tensor, sampling: Sampling, seen: Tensor | None = None) -> Tensor:
    """
    log pi [B, V] float32: logits after the repetition penalty, divided by the temperature, then
    min-p, then top-k, then top-p of what is left, renormalised. vLLM has the same order. `seen`:
    [B, V], whether prompt or completion have a token; needed only for a penalty.

    Tokens as likely as the k-th stay in. Temperature 0 is greedy, its log-probabilities are at
    temperature 1.
    """
    scaled = logits.float()
    penalty = sampling.repetition_penalty
    if penalty != 1:
        assert seen is not None
        penalised = torch.where(scaled > 0, scaled / penalty, scaled * penalty)
        scaled = torch.where(seen, penalised, scaled)
    temperature = sampling.temperature
    if temperature == 0:
        return torch.log_softmax(scaled, dim=-1)
    if temperature != 1:
        scaled = scaled / temperature
    if sampling.min_p > 0:
        threshold = scaled.amax(dim=-1, keepdim=True) + math.log(sampling.min_p)
        scaled = scaled.masked_fill(scaled < threshold, REFUSED)
    if 0 < sampling.top_k < scaled.shape[-1]:
        threshold = torch.topk(scaled, sampling.top_k, dim=-1).values[:, -1:]
        scaled = scaled.masked_fill(scaled < threshold, REFUSED)
    if sampling.top_p < 1:
        scaled = _nucleus(scaled, sampling.top_p)
    return torch.log_softmax(scaled, dim=-1)


def _nucleus(scaled: Tensor, top_p: float) -> Tensor:
    """
    Keeps the likeliest tokens up to the first with which their sum reaches `top_p`; ties by token
    id.
    """
    ordered, order = torch.sort(scaled, dim=-1, descending=True, stable=True)
    probability = torch.softmax(ordered, dim=-1)
    before = torch.cumsum(probability, dim=-1, dtype=torch.float64) - probability
    refused = torch.zeros_like(before, dtype=torch.bool).scatter_(-1, order, before >= top_p)
    return scaled.masked_fill(refused, REFUSED)


def choose(
    logits: Tensor, uniform: Tensor, sampling: Sampling, seen: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """
    (tokens [B] int64, log-probabilities [B] float32). `uniform`: [B] float64 in [0, 1 - 2**-52].
    """
    logp = log_distribution(logits, sampling, seen)
    if sampling.temperature == 0:
        tokens = torch.argmax(logp, dim=-1, keepdim=True)
    else:
        tokens = _drawn(torch.exp(logp), uniform[:, None])
    return tokens.squeeze(-1), logp.gather(-1, tokens).squeeze(-1)


def _drawn(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """
    Tokens [B, 1] int64: the first whose cumulated probability [B, V] exceeds uniform [B, 1] * total.

    Sums are float64, so a token of probability 0 is never taken and the last one is always reached.
    Only one block of each row is cumulated: the whole vocabulary took five times as long.
    """
    spare = -probabilities.shape[-1] % BLOCK
    blocks = functional.pad(probabilities, (0, spare)) if spare else probabilities
    blocks = blocks.unflatten(-1, (-1, BLOCK))
    ends = torch.cumsum(blocks.sum(-1, dtype=torch.float64), dim=-1)
    target = uniform * ends[:, -1:]
    # Not-a-number logits would point past the end; they are refused by name once the slab is done.
    block = torch.searchsorted(ends, target, right=True).clamp_(max=ends.shape[-1] - 1)
    inside = blocks.take_along_dim(block[:, :, None], dim=1).squeeze(1)
    before = functional.pad(ends, (1, 0)).gather(-1, block)
    cumulated = before + torch.cumsum(inside, dim=-1, dtype=torch.float64)
    # A block's sum may be a bit more than its last cumulated one, in another order of additions.
    target = torch.minimum(target, torch.nextafter(cumulated[:, -1:], torch.zeros_like(target)))
    within = torch.searchsorted(cumulated, target, right=True).clamp_(max=BLOCK - 1)
    return (block * BLOCK + within).clamp_(max=probabilities.shape[-1] - 1)
