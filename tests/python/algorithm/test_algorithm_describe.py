"""What opening a file finds in it."""

from __future__ import annotations

import pytest

from algorithm_files import KTO, P3O, PLAIN, REWARD_MODEL, recorded
from holdfast_worker.algorithm import AlgorithmError
from holdfast_worker.algorithm.describe import describe


def changed(source: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def test_a_file_is_described_with_all_that_it_reads_and_its_settings() -> None:
    assert describe(recorded(P3O, std_epsilon=1)) == {
        "settings": {"std_epsilon": 1.0, "pull": "k3"},
        "inputs": ["advantage", "behaviour_logp", "logp", "n_tokens"],
        "metrics": ["policy/ess"],
        "pairs": False,
        "mismatched": False,
        "live_statistics": True,
        "value_inputs": None,
        "needs": [],
        "group_min": 2,
        "coef": {},
    }


def test_a_reward_model_and_labelled_completions_are_described() -> None:
    found = describe(recorded(REWARD_MODEL))
    assert (found["inputs"], found["pairs"], found["needs"]) == (["margin", "score"], True, None)
    found = describe(recorded(KTO))
    assert found["inputs"] == ["label", "logp", "ref_logp"]
    assert (found["pairs"], found["mismatched"], found["live_statistics"]) == (False, True, True)


def test_what_a_file_reads_may_depend_on_its_settings() -> None:
    source = (
        "from dataclasses import dataclass\n@dataclass\nclass Config:\n    kl: float = 0.0\n"
        "def loss(x, c):\n    return {'loss': ('token_mean', -x.logp if c.kl == 0 else x.logp - x.ref_logp)}\n"
    )
    assert describe(recorded(source))["inputs"] == ["logp"]
    assert describe(recorded(source, kl=0.1))["inputs"] == ["logp", "ref_logp"]


def test_needs_of_credit_are_found_and_may_be_listed() -> None:
    reads = changed(
        PLAIN, ("round.reward.mean()", "np.array([row.mean() for row in round.values])")
    )
    assert describe(recorded(f"import numpy as np\n{reads}"))["needs"] == ["values"]
    assert describe(recorded(f"NEEDS = ['bootstrap']\n{PLAIN}"))["needs"] == ["bootstrap"]
    with pytest.raises(
        AlgorithmError, match=r"my.py because it NEEDS 'value' \(did you mean values\?\)"
    ):
        describe(recorded(f"NEEDS = ['value']\n{PLAIN}"))


def test_a_value_loss_and_coefficients_are_described() -> None:
    more = (
        "def coef(c):\n    return {'kl': 1}\ndef value_loss(x, c):\n    e = x.values - x.returns\n"
    )
    more += "    return {'loss': ('token_mean', x.coef.kl * e.square())}\n"
    found = describe(recorded(PLAIN + more))
    assert found["coef"] == {"kl": 1.0}
    assert found["value_inputs"] == ["coef.kl", "returns", "values"]
