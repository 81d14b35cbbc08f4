"""
choosing.py: the distribution sampled from, and the inverse of its cumulated sum, against plain
Python.
"""

import math

import pytest
import torch

from holdfast_worker.sampler.choosing import choose, log_distribution
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import Sampling
from sampler_fixtures import SAMPLING

LOGITS = [2.0, -1.0, 0.5, 0.5, -3.0, 1.0, -math.inf]
SEEN = {0, 3, 4}  # Tokens of the prompt or the completion so far.
MASK = torch.tensor([[token in SEEN for token in range(len(LOGITS))]])


def sampling(**changes):
    usual = {"temperature": 1.0, "top_k": -1, "top_p": 1.0, "min_p": 0, "repetition_penalty": 1}
    return decode(Sampling, {**SAMPLING, **usual, **changes})


def reference(how):
    """The distribution by its definition, in float64."""
    penalty = how.repetition_penalty
    penalised = [
        (logit / penalty if logit > 0 else logit * penalty) if token in SEEN else logit
        for token, logit in enumerate(LOGITS)
    ]
    scaled = [logit / how.temperature for logit in penalised]
    if how.min_p > 0:
        highest = math.exp(max(scaled))
        scaled = [
            value if math.exp(value) >= how.min_p * highest else -math.inf for value in scaled
        ]
    if how.top_k > 0:
        threshold = sorted(scaled, reverse=True)[: how.top_k][-1]
        scaled = [value if value >= threshold else -math.inf for value in scaled]
    weights = [math.exp(value) for value in scaled]
    weights = [weight / sum(weights) for weight in weights]
    before, kept = 0.0, set()
    for token in sorted(range(len(weights)), key=lambda token: (-weights[token], token)):
        if before < how.top_p:
            kept.add(token)
        before += weights[token]
    weights = [weight if token in kept else 0.0 for token, weight in enumerate(weights)]
    return [weight / sum(weights) for weight in weights]


CASES = [
    sampling(),
    sampling(temperature=0.7),
    sampling(top_k=3),
    sampling(top_k=1),
    sampling(top_k=100),
    sampling(top_p=0.6),
    sampling(top_p=1e-9),
    sampling(temperature=0.7, top_k=5, top_p=0.9),
    sampling(min_p=0.1),
    sampling(min_p=1),
    sampling(repetition_penalty=1.7),
    sampling(repetition_penalty=0.5, temperature=0.7, min_p=0.02, top_k=5, top_p=0.9),
]


@pytest.mark.parametrize("how", CASES)
def test_log_distribution_is_temperature_then_top_k_then_top_p_renormalised(how):
    logp = log_distribution(torch.tensor([LOGITS]), how, MASK)[0]
    assert logp.dtype == torch.float32
    assert torch.exp(logp).tolist() == pytest.approx(reference(how), abs=1e-6)


@pytest.mark.parametrize("how", CASES)
def test_choose_inverts_the_cumulated_distribution(how):
    uniform = torch.linspace(0, 1 - 2**-52, 2001, dtype=torch.float64)
    tokens, logp = choose(torch.tensor([LOGITS]).expand(len(uniform), -1), uniform, how, MASK)
    expected, borders = reference(how), [0.0]
    for probability in expected:
        borders.append(borders[-1] + probability)
    for number, token, value in zip(uniform.tolist(), tokens.tolist(), logp.tolist()):
        assert expected[token] > 0
        assert borders[token] - 1e-6 <= number <= borders[token + 1] + 1e-6
        assert value == pytest.approx(math.log(expected[token]), abs=1e-5)


def test_choose_is_greedy_at_temperature_0_with_log_probabilities_at_temperature_1():
    tokens, logp = choose(
        torch.tensor([LOGITS]),
        torch.zeros(1, dtype=torch.float64),
        sampling(temperature=0, top_k=2),
    )
    assert tokens.tolist() == [0]
    assert logp.item() == pytest.approx(math.log(reference(sampling())[0]), abs=1e-6)


def test_penalty_and_min_p_are_those_of_transformers():
    from transformers import MinPLogitsWarper, RepetitionPenaltyLogitsProcessor

    logits, ids = torch.randn(4, 50), torch.randint(50, (4, 9))
    seen = torch.zeros(4, 50, dtype=torch.bool).scatter_(1, ids, True)
    theirs = RepetitionPenaltyLogitsProcessor(1.3)(ids, logits)
    theirs = MinPLogitsWarper(0.05)(ids, theirs / 0.8)
    ours = log_distribution(
        logits, sampling(temperature=0.8, repetition_penalty=1.3, min_p=0.05), seen
    )
    torch.testing.assert_close(ours, torch.log_softmax(theirs, dim=-1))
    greedy = log_distribution(logits, sampling(temperature=0, repetition_penalty=1.3), seen)
    theirs = RepetitionPenaltyLogitsProcessor(1.3)(ids, logits)
    torch.testing.assert_close(greedy, torch.log_softmax(theirs, dim=-1))


@pytest.mark.parametrize("vocabulary", [1, 255, 256, 257, 1000])
def test_choose_over_blocks_is_the_first_token_past_the_target(vocabulary):
    """With every third token refused, at the borders of tokens and just beside them."""
    torch.manual_seed(vocabulary)
    logits = 3 * torch.randn(vocabulary)
    logits[1::3] = -math.inf
    logp = log_distribution(logits[None], sampling())
    cumulated = torch.cumsum(torch.exp(logp[0]), dim=-1, dtype=torch.float64)
    uniform = torch.cat(
        [
            torch.linspace(0, 1 - 2**-52, 4001, dtype=torch.float64),
            (cumulated / cumulated[-1] - 1e-9).clamp(0, 1 - 2**-52),
            (cumulated / cumulated[-1] + 1e-9).clamp(0, 1 - 2**-52),
        ]
    )
    tokens, taken = choose(logits.expand(len(uniform), -1), uniform, sampling())
    expected = torch.searchsorted(cumulated, uniform * cumulated[-1], right=True)
    assert torch.equal(tokens, expected)
    assert torch.equal(taken, logp[0, tokens])
    assert bool(taken.isfinite().all())


def test_choose_stays_among_tokens_that_can_be_taken_where_a_sum_was_rounded_up():
    """A block's sum, in another order of additions, may be above its last cumulated one."""
    torch.manual_seed(0)
    logits = 9 * torch.randn(500, 512)  # Of nearer probabilities the sums are exact.
    logits[:, 200:256] = -math.inf  # The first block ends in tokens that must not be taken.
    blocks = torch.exp(log_distribution(logits, sampling())).unflatten(-1, (-1, 256))
    last = blocks[:, 0].cumsum(-1, dtype=torch.float64)[:, -1]
    ends = blocks.sum(-1, dtype=torch.float64).cumsum(-1)
    between = 0
    for steps in range(-2, 3):
        uniform = last / ends[:, 1] + steps * 2**-54
        target = uniform * ends[:, 1]
        between += int(((last <= target) & (target < ends[:, 0])).sum())
        tokens, taken = choose(logits, uniform, sampling())
        assert bool(taken.isfinite().all())
        assert bool(((tokens < 200) | (tokens >= 256)).all())
    assert between > 0
