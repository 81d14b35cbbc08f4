"""Losses that cannot be trained on."""

from __future__ import annotations

import pytest

from algorithm_files import loss_of, recorded
from holdfast_worker.algorithm import AlgorithmError
from holdfast_worker.algorithm.describe import describe

REFUSED = [
    (
        "def los(x): pass",
        r"my.py because it has no function loss\(x, c, s\) \(did you mean los\?\)",
    ),
    ("def loss(x:\n", r"load my.py because my.py:1 is no Python: SyntaxError"),
    (
        "x = 1\nimport nothing_of_this_name",
        r"load my.py because my.py:2 raised, at `import nothing_of_this_name`",
    ),
    (
        loss_of("{'loss': ('token_mean', x.lopg)}"),
        r"my.py:3 raised.*no input 'lopg' \(did you mean logp\?\)",
    ),
    (
        loss_of("{'loss': ('token_mean', x.logp * s.w)}"),
        r"my.py:3 raised.*there is no statistics\(x, c\)",
    ),
    (
        loss_of("{'loss': ('token_mean', x.logp + undefined)}"),
        r"my.py:3 raised, at .*NameError",
    ),
    (loss_of("x.logp.mean()"), r"it is a scalar without 'loss': return \{\"loss\""),
    (
        loss_of("{'loss': x.logp.mean()}"),
        r"the loss that loss\(\) of my.py returned because it has no reduction",
    ),
    (
        loss_of("{'loss': ('token_mean', x.logp.mean())}"),
        r"a tensor of shape \[\]: return it unreduced",
    ),
    (loss_of("{'loss': ('mean', x.logp)}"), r"no reduction 'mean' \(did you mean"),
    (
        loss_of("{'loss': ('pair_mean', x.logp)}"),
        r"over pairs because it is a token value: use x.chosen",
    ),
    (
        loss_of("{'loss': ('token_mean', x.logp.detach())}"),
        r"no gradient flows from it to the model",
    ),
    (
        loss_of("{'loss': ('token_mean', x.advantage)}"),
        r"no gradient flows from it to the model",
    ),
    (
        loss_of("{'loss': ('token_mean', x.logp * x.values)}"),
        r"reads 'values', which a different model computes",
    ),
    (loss_of("{'loss': ('token_mean', x.logp.log())}"), r"not finite: first at my.py:3 log"),
    (
        loss_of("{'loss': ('token_mean', x.logp * x.logp.mean())}"),
        r"it depends on how a step is split",
    ),
    (
        loss_of("{'loss': ('sum', x.logp), 'metrics': {'m': x.logp.mean()}}"),
        r"metric 'm' .* each micro-batch",
    ),
    (
        loss_of("{'loss': ('token_mean', x.logp), 'metric': {}}"),
        r"'metric' \(did you mean metrics\?\)",
    ),
    (
        "class Config:\n    pass\n" + loss_of("{'loss': ('sum', x.logp)}"),
        r"its Config is no dataclass",
    ),
]


@pytest.mark.parametrize(("source", "message"), REFUSED)
def test_a_loss_that_cannot_be_trained_on_is_refused_by_file_and_line(
    source: str, message: str
) -> None:
    with pytest.raises(AlgorithmError, match=message):
        describe(recorded(source))
