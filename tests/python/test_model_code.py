"""Code that a model brings: whether it needs it, and whether it is whole."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import sampler_fixtures as fixtures
from holdfast_worker import model_code
from own_model import change, give_code, use_modules


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_modules(monkeypatch, tmp_path)
    return give_code(fixtures.make_model(tmp_path / "model"))


def why(model: Path, *, trusted: bool) -> str | None:
    return model_code.why_not({"name": "n/m", "directory": str(model), "trusted": trusted})


def test_why_not_refuses_code_that_is_needed_and_not_trusted(model: Path) -> None:
    assert why(model, trusted=False) == (
        "Cannot open model 'n/m' because it needs its own Python code (modeling_own.py) and "
        "model.trust_remote_code is false: that code would run in the workers with your rights. "
        "Fix: "
        "read it, then set model.trust_remote_code: true; or name a model that transformers can "
        "open "
        "by itself"
    )
    assert why(model, trusted=True) is None


def test_why_not_lets_a_model_pass_that_transformers_opens_without_its_code(model: Path) -> None:
    change(model, model_type="qwen2")
    assert why(model, trusted=False) is None
    config = json.loads((model / "config.json").read_text())
    del config["auto_map"]
    (model / "config.json").write_text(json.dumps(config))
    assert (why(model, trusted=False), why(model, trusted=True)) == (None, None)


def test_why_not_runs_no_code(model: Path) -> None:
    (model / "modeling_own.py").write_text("raise SystemExit('it ran')")
    assert why(model, trusted=False) is not None
    assert why(model, trusted=True) is None


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (
            lambda model: (model / "modeling_own.py").unlink(),
            "its code modeling_own.py cannot be loaded: ",
        ),
        (
            lambda model: (model / "modeling_own.py").write_text("import no_such_package_at_all"),
            "cannot be loaded: .*no_such_package_at_all.* Fix: install what it imports",
        ),
        (
            lambda model: change(model, auto_map={"AutoConfig": "other/repo--modeling.OwnConfig"}),
            "its code is in a different repository, 'other/repo': nothing fixes its version",
        ),
    ],
)
def test_why_not_refuses_trusted_code_that_is_not_whole(
    model: Path, break_it: Any, says: str
) -> None:
    break_it(model)
    answer = why(model, trusted=True)
    assert answer is not None and "\n" not in answer
    assert re.search(says, answer), answer
