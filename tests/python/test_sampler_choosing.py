"""
choosing.py: the distribution sampled from, and the inverse of its cumulated sum, against plain
Python.
"""

import math

import pytest
import torch

from holdfast_worker.sampler.choosing import choose, log_distribution

LOGITS = [2.0, -1.0, 0.5, 0.5, -3.0, 1.0, -math.inf]


def sampling(**changes):
    return {"temperature": 1.0, "top_k": -1, "top_p": 1.0, **changes}


def reference(how):
    """The distribution by its definition, in float64."""
    scaled = [logit / how["temperature"] for logit in LOGITS]
    if how["top_k"] > 0:
        threshold = sorted(scaled, reverse=True)[: how["top_k"]][-1]
        scaled = [value if value >= threshold else -math.inf for value in scaled]
    weights = [math.exp(value) for value in scaled]
    weights = [weight / sum(weights) for weight in weights]
    before, kept = 0.0, set()
    for token in sorted(range(len(weights)), key=lambda token: (-weights[token], token)):
        if before < how["top_p"]:
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
]


@pytest.mark.parametrize("how", CASES)
def test_log_distribution_is_temperature_then_top_k_then_top_p_renormalised(how):
    logp = log_distribution(torch.tensor([LOGITS]), how)[0]
    assert logp.dtype == torch.float32
    assert torch.exp(logp).tolist() == pytest.approx(reference(how), abs=1e-6)


@pytest.mark.parametrize("how", CASES)
def test_choose_inverts_the_cumulated_distribution(how):
    uniform = torch.linspace(0, 1 - 2**-52, 2001, dtype=torch.float64)
    tokens, logp = choose(torch.tensor([LOGITS]).expand(len(uniform), -1), uniform, how)
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
