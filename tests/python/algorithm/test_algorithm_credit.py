"""Credit that a file assigns."""

from __future__ import annotations

import numpy as np
import pytest

from algorithm_files import loss_of, recorded
from holdfast_worker.algorithm import Algorithm, AlgorithmError
from holdfast_worker.algorithm.credit import assign, read_round
from holdfast_worker.algorithm.describe import describe


@pytest.mark.parametrize(
    ("credit", "message"),
    [
        ("round.rewards", r"my.py:2 raised.*no 'rewards' \(did you mean reward\?\)"),
        ("{'advantages': round.reward}", r"credit\(\) of my.py returned: it is a dict"),
        ("{'advantage': round.reward, 'return': 1}", r"'return' \(did you mean returns\?\)"),
        ("{'advantage': round.reward[1:]}", r"there are 4 of them: the round has 5 sequences"),
        (
            "{'advantage': [[1.0]] * len(round)}",
            r"sequence 0 has 1 numbers: it has 3 sampled tokens",
        ),
        (
            "{'advantage': round.reward / 0}",
            r"advantage of sequence 0 because credit\(\) of my.py assigned inf to it",
        ),
    ],
)
def test_credit_that_assigns_no_numbers_is_refused(credit: str, message: str) -> None:
    source = f"def credit(round, c):\n    return {credit}\n" + loss_of("{'loss': ('sum', x.logp)}")
    with np.errstate(all="ignore"), pytest.raises(AlgorithmError, match=message):
        describe(recorded(source))


def test_credit_sees_the_round_in_numpy_and_answers_plain_numbers() -> None:
    source = (
        "import torch\ndef credit(round, c):\n    pairs = zip(round.length.tolist(), round.reward.tolist())\n"
        "    last = [torch.tensor([0.0] * (n - 1) + [r]) for n, r in pairs]\n"
        "    return {'advantage': last, 'returns': round.old_logp, 'coef': {'kl': round.coef['kl'] * 2},\n"
        "            'metrics': {'stops': sum(stop == 'stop' for stop in round.stop)}}\n"
        "def coef(c):\n    return {'kl': 1.0}\n"
    ) + loss_of("{'loss': ('sum', x.logp)}")
    content = {"reward": [1, 0], "group": [0, 0], "stop": ["stop", "length"], "length": [2, 1]}
    round_ = read_round({**content, "old_logp": [[-1, -2], [-3]], "coef": {"kl": 0.5}})
    assert assign(Algorithm(recorded(source)), round_) == {
        "advantage": [[0.0, 1.0], [0.0]],
        "returns": [[-1.0, -2.0], [-3.0]],
        "coef": {"kl": 1.0},
        "metrics": {"stops": 1.0},
    }


def test_credit_sees_each_reward_by_itself() -> None:
    source = (
        "import numpy as np\ndef credit(round, c):\n"
        "    shares = [part.weight * np.nan_to_num(part.paid, nan=9) for part in round.parts]\n"
        "    return {'advantage': sum(shares), 'metrics': {part.name: 1 for part in round.parts}}\n"
    ) + loss_of("{'loss': ('sum', x.logp)}")
    assert describe(recorded(source))["needs"] == ["parts"]
    content = {"reward": [1, 0], "group": [0, 0], "stop": ["stop", "stop"], "length": [2, 1]}
    parts = [
        {"name": "right", "weight": 1, "paid": [1, 0]},
        {"name": "short", "weight": 0.5, "paid": [None, 4]},
    ]
    assert assign(Algorithm(recorded(source)), read_round({**content, "parts": parts})) == {
        "advantage": [5.5, 2.0],
        "metrics": {"right": 1.0, "short": 1.0},
    }
    without = read_round(content)
    with pytest.raises(AlgorithmError, match=r"no 'parts'.*NEEDS = \['parts'\]"):
        assign(Algorithm(recorded(source)), without)
