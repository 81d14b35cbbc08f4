"""An algorithm in a Python file: what opening it finds and refuses, and the step that it makes."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from holdfast_worker.algorithm import Algorithm, AlgorithmError, recorded_program
from holdfast_worker.algorithm.credit import assign, read_round
from holdfast_worker.algorithm.describe import describe
from holdfast_worker.loss import LossProgram
from loss_expressions import effective_sample_size
from test_loss_step import WHOLE, Model

P3O = (Path(__file__).parents[1] / "algs" / "python" / "p3o.py").read_text()
PLAIN = """
def credit(round, c):
    return {"advantage": round.reward - round.reward.mean()}

def loss(x, c):
    return {"loss": ("token_mean", -x.advantage * x.logp)}
"""


def recorded(source: str, **settings: Any) -> dict[str, Any]:
    return {"file": "my.py", "source": source, "settings": settings}


def program(source: str, old_is_current: bool = False, **settings: Any) -> Any:
    content = {"version": 1, "python": {**recorded(source, **settings), "part": "loss"}}
    return recorded_program(content, old_is_current)


def changed(source: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def loss_of(expression: str) -> str:
    return f"import torch\ndef loss(x, c, s):\n    return {expression}\n"


def test_a_file_is_described_with_all_that_it_reads_and_its_settings() -> None:
    assert describe(recorded(P3O, std_epsilon=1)) == {
        "settings": {"std_epsilon": 1.0, "pull": "k3"},
        "inputs": ["advantage", "behaviour_logp", "logp", "n_tokens"],
        "metrics": ["policy/ess"],
        "pairs": False,
        "live_statistics": True,
        "value_inputs": None,
        "needs": [],
        "group_min": 2,
        "coef": {},
    }


def test_what_a_file_reads_may_depend_on_its_settings() -> None:
    source = (
        "from dataclasses import dataclass\n@dataclass\nclass Config:\n    kl: float = 0.0\n"
        "def loss(x, c):\n    return {'loss': ('token_mean', -x.logp if c.kl == 0 else x.logp - x.ref_logp)}\n"
    )
    assert describe(recorded(source))["inputs"] == ["logp"]
    assert describe(recorded(source, kl=0.1))["inputs"] == ["logp", "ref_logp"]


def test_needs_of_credit_are_found_and_may_be_listed() -> None:
    reads = changed(PLAIN, ("round.reward.mean()", "np.array([row.mean() for row in round.values])"))
    assert describe(recorded(f"import numpy as np\n{reads}"))["needs"] == ["values"]
    assert describe(recorded(f"NEEDS = ['bootstrap']\n{PLAIN}"))["needs"] == ["bootstrap"]
    with pytest.raises(AlgorithmError, match=r"my.py because it NEEDS 'value' \(did you mean values\?\)"):
        describe(recorded(f"NEEDS = ['value']\n{PLAIN}"))


def test_a_value_loss_and_coefficients_are_described() -> None:
    more = "def coef(c):\n    return {'kl': 1}\ndef value_loss(x, c):\n    e = x.values - x.returns\n"
    more += "    return {'loss': ('token_mean', x.coef.kl * e.square())}\n"
    found = describe(recorded(PLAIN + more))
    assert found["coef"] == {"kl": 1.0}
    assert found["value_inputs"] == ["coef.kl", "returns", "values"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"std_epsilom": 1}, r"the setting 'std_epsilom' because there is none .*\(did you mean std_epsilon\?\)"),
        ({"std_epsilon": "a"}, r"the setting 'std_epsilon' 'a': expected float"),
        ({"std_epsilon": True}, r"the setting 'std_epsilon' True: expected float"),
        ({"pull": "k2"}, r"the setting 'pull' 'k2': expected Literal\['k3', 'forward'\]"),
    ],
)
def test_settings_are_checked_against_config(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(AlgorithmError, match=message):
        describe(recorded(P3O, **settings))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def los(x): pass", r"my.py because it has no function loss\(x, c, s\) \(did you mean los\?\)"),
        ("def loss(x:\n", r"load my.py because my.py:1 is no Python: SyntaxError"),
        ("x = 1\nimport nothing_of_this_name", r"load my.py because my.py:2 raised, at `import nothing_of_this_name`"),
        (loss_of("{'loss': ('token_mean', x.lopg)}"), r"my.py:3 raised.*no input 'lopg' \(did you mean logp\?\)"),
        (loss_of("{'loss': ('token_mean', x.logp * s.w)}"), r"my.py:3 raised.*there is no statistics\(x, c\)"),
        (loss_of("{'loss': ('token_mean', x.logp + undefined)}"), r"my.py:3 raised, at .*NameError"),
        (loss_of("x.logp.mean()"), r"it is a scalar without 'loss': return \{\"loss\""),
        (loss_of("{'loss': x.logp.mean()}"), r"the loss that loss\(\) of my.py returned because it has no reduction"),
        (loss_of("{'loss': ('token_mean', x.logp.mean())}"), r"a tensor of shape \[\]: return it unreduced"),
        (loss_of("{'loss': ('mean', x.logp)}"), r"no reduction 'mean' \(did you mean"),
        (loss_of("{'loss': ('pair_mean', x.logp)}"), r"over pairs because it is a token value: use x.chosen"),
        (loss_of("{'loss': ('token_mean', x.logp.detach())}"), r"no gradient flows from it to the model"),
        (loss_of("{'loss': ('token_mean', x.advantage)}"), r"no gradient flows from it to the model"),
        (loss_of("{'loss': ('token_mean', x.logp * x.values)}"), r"reads 'values', which another model computes"),
        (loss_of("{'loss': ('token_mean', x.logp.log())}"), r"not finite: first at my.py:3 log"),
        (loss_of("{'loss': ('token_mean', x.logp * x.logp.mean())}"), r"it depends on how a step is cut"),
        (loss_of("{'loss': ('sum', x.logp), 'metrics': {'m': x.logp.mean()}}"), r"metric 'm' .* each micro-batch"),
        (loss_of("{'loss': ('token_mean', x.logp), 'metric': {}}"), r"'metric' \(did you mean metrics\?\)"),
        ("class Config:\n    pass\n" + loss_of("{'loss': ('sum', x.logp)}"), r"its Config is no dataclass"),
    ],
)
def test_a_loss_that_cannot_be_trained_on_is_refused_by_file_and_line(source: str, message: str) -> None:
    with pytest.raises(AlgorithmError, match=message):
        describe(recorded(source))


@pytest.mark.parametrize(
    ("credit", "message"),
    [
        ("round.rewards", r"my.py:2 raised.*no 'rewards' \(did you mean reward\?\)"),
        ("{'advantages': round.reward}", r"credit\(\) of my.py returned: it is a dict"),
        ("{'advantage': round.reward, 'return': 1}", r"'return' \(did you mean returns\?\)"),
        ("{'advantage': round.reward[1:]}", r"there are 4 of them: the round has 5 sequences"),
        ("{'advantage': [[1.0]] * len(round)}", r"sequence 0 has 1 numbers: it has 3 sampled tokens"),
        ("{'advantage': round.reward / 0}", r"advantage of sequence 0 because credit\(\) of my.py assigned inf to it"),
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


def p3o_model() -> Model:
    model = Model.random(behaviour_logp=0.9)
    model.columns["advantage"] = [[0.5 - place] * len(row) for place, row in enumerate(model.rows)]
    return model


def test_p3o_equals_the_step_of_every_other_cut_and_its_statistic_costs_one_forward_each() -> None:
    first = p3o_model()
    outcome = first.step(program(P3O), WHOLE)
    assert outcome.finite and 0 < outcome.metrics["policy/ess"] < 1
    for cut in ([[4], [3], [2], [1], [0]], [[2, 0], [-1, 1], [3, 4]]):
        other = p3o_model()
        found = other.step(program(P3O), cut, padding=9)
        assert found == outcome
        assert float(other.weight.grad) == pytest.approx(float(first.weight.grad), rel=1e-5)
        assert other.calls == [({"logp"}, False)] * len(cut) + [({"logp"}, True)] * len(cut)


def test_no_padding_changes_a_bit_of_an_operation_that_torch_computes_by_place() -> None:
    source = loss_of("{'loss': ('sequence_mean', x.per_sequence_mean((x.logp * 1.7).sigmoid() ** 1.3))}")
    first = Model.random().step(program(source), WHOLE)
    for cut in ([[4], [3], [2], [1], [0]], [[2, 0], [-1, 1], [3, 4]]):
        assert Model.random().step(program(source), cut, padding=9) == first


def test_the_effective_sample_size_equals_that_of_the_expression() -> None:
    expected = Model.random(behaviour_logp=0.9).step(LossProgram(effective_sample_size()), WHOLE)
    assert p3o_model().step(program(P3O), WHOLE).metrics["policy/ess"] == pytest.approx(
        expected.metrics["policy/ess"], rel=1e-12
    )


def test_a_column_that_holds_the_current_logp_saves_the_forward_of_the_statistic() -> None:
    model = p3o_model()
    model.columns["old_logp"] = [row.tolist() for row in model.rows]
    saved = model.step(program(P3O), WHOLE, logp_current="old_logp")
    assert model.calls == [({"logp"}, True)]
    assert saved == p3o_model().step(program(P3O), WHOLE)


def test_old_logp_is_the_detached_logp_where_the_batch_serves_one_step() -> None:
    source = loss_of("{'loss': ('token_mean', -(x.logp - x.old_logp).exp() * x.advantage)}")
    opened = program(source, old_is_current=True)
    assert opened.inputs == {"logp", "advantage"} and opened.columns == {"advantage"}
    model = Model([[-1.0, -2.0]], {"advantage": [[3.0, -1.0]]})
    assert model.step(opened, [[0]]).loss == -1.0
    assert model.weight.grad == -1.0


def test_a_loss_that_is_not_finite_names_line_sequence_and_token() -> None:
    source = "def loss(x, c):\n    ratio = (x.logp - x.old_logp).exp()\n    return {'loss': ('token_mean', ratio)}\n"
    model = Model([[-1.0, -1.0], [-1.0, 99.0]], {"old_logp": [[-1.0, -1.0], [-1.0, -1.0]]})
    outcome = model.step(program(source), [[0], [1]])
    assert not outcome.finite and outcome.culprit is not None
    assert outcome.culprit.text == "my.py:2 exp, at `ratio = (x.logp - x.old_logp).exp()`"
    assert (outcome.culprit.sequence, outcome.culprit.token) == (1, 1)


def test_reading_by_the_data_is_refused() -> None:
    source = "def loss(x, c):\n    extra = x.ref_logp if len(x.logp) == 1 else 0\n"
    source += "    return {'loss': ('token_mean', x.logp + extra)}\n"
    model = Model([[-1.0]], {"ref_logp": [[-1.0]]})
    with pytest.raises(AlgorithmError, match="Cannot read 'ref_logp' in loss.. of my.py because it was not read when"):
        model.step(program(source), [[0]])


def test_opening_a_file_moves_no_random_number() -> None:
    source = "import random, torch, numpy as np\nrandom.random(), torch.rand(3), np.random.rand()\n" + PLAIN
    draws: list[Callable[[], float]] = [lambda: float(torch.rand(())), lambda: float(np.random.rand())]
    torch.manual_seed(1)
    np.random.seed(1)
    expected = [draw() for draw in draws]
    torch.manual_seed(1)
    np.random.seed(1)
    describe(recorded(source))
    assert [draw() for draw in draws] == expected


def test_what_is_masked_reaches_no_gradient() -> None:
    source = loss_of("{'loss': ('sequence_mean', x.per_sequence_mean(x.logp / x.old_logp) * x.length)}")
    model = Model([[-1.0, -2.0], [-1.0]], {"old_logp": [[-1.0, -4.0], [-2.0]]})
    outcome = model.step(program(source), [[0, 1]], padding=3)  # 0 / 0 at every padded token.
    assert outcome.loss == (1.5 + 0.5) / 2
    assert model.weight.grad is not None and math.isclose(float(model.weight.grad), (-1.25 - 0.5) / 2)


def test_a_breakpoint_is_passed_over_in_the_dry_run_and_refused_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "breakpointhook", sys.breakpointhook)
    source = "def loss(x, c):\n    breakpoint()\n    return {'loss': ('token_mean', x.logp)}\n"
    assert describe(recorded(source))["inputs"] == ["logp"]
    with pytest.raises(AlgorithmError, match="in a run: try the file with `loss try"):
        Model([[-1.0]]).step(program(source), [[0]])
