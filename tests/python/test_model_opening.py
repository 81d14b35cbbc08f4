"""How models are opened: their kernels of attention, and code that they bring."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import sampler_fixtures as fixtures
from holdfast_worker import model_code
from holdfast_worker.operation import BadDataError, OperationIO
from trainer_harness import OPTIMIZER, Trainer, trajectory_batch

OWN = "own_tiny"
CODE = """
from transformers import Qwen2Config, Qwen2ForCausalLM
class OwnConfig(Qwen2Config):
    model_type = "own_tiny"
class OwnForCausalLM(Qwen2ForCausalLM):
    config_class = OwnConfig
"""


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return fixtures.make_model(tmp_path / "model")


@pytest.fixture
def own(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of a kind that transformers does not have."""
    modules = str(tmp_path / "modules")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
    monkeypatch.syspath_prepend(modules)
    auto_map = {"AutoConfig": "modeling_own.OwnConfig", "AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}
    change(plain, model_type=OWN, architectures=["OwnForCausalLM"], auto_map=auto_map)
    (plain / "modeling_own.py").write_text(CODE)
    return plain


def change(model: Path, **fields: Any) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, **fields}))


def load(trainer: Trainer, model: Path) -> dict[str, Any]:
    arguments = {"version": "v", "model_path": str(model), "optimizer": OPTIMIZER, "checkpoint": None}
    return trainer.call("load", **arguments)


def kernels(model: Any) -> str:
    return model.config._attn_implementation


@pytest.mark.parametrize("chosen", ["eager", "sdpa"])
def test_trainer_reference_and_sampler_have_the_configured_kernels_and_versions_say_so(
    plain: Path, tmp_path: Path, chosen: str
) -> None:
    trainer = Trainer(tmp_path, attn_implementation=chosen)
    assert load(trainer, plain)["numerics"]["attn_implementation"] == chosen
    worker = trainer.worker
    assert kernels(worker.engine.model) == chosen
    with worker.trainer.references.borrowed(str(plain), dtype="float32", offload=False) as reference:
        assert kernels(reference) == chosen
    publication = trainer.call("publish", version="v", dir=str(tmp_path / "published"))
    sampler = fixtures.make_worker(attn_implementation=chosen)
    fixtures.load(sampler, plain, publication)
    assert kernels(sampler.engine.model) == chosen


def test_kernels_that_are_not_installed_are_one_sentence(plain: Path, tmp_path: Path) -> None:
    trainer = Trainer(tmp_path, attn_implementation="flash_attention_2")
    with pytest.raises(BadDataError, match=f"Cannot open model '{plain}': .*[Ff]lash"):
        load(trainer, plain)


def test_code_of_a_model_runs_in_trainer_and_sampler_only_where_it_is_trusted(
    own: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadDataError, match=r"trust_remote_code"):
        load(Trainer(tmp_path / "untrusting"), own)
    trainer = Trainer(tmp_path, trust_remote_code=True)
    assert load(trainer, own)["numerics"]["trust_remote_code"] is True
    assert type(trainer.worker.engine.model).__name__ == "OwnForCausalLM"
    batch = trajectory_batch(trainer.artifacts, [[6, 7]])
    trainer.optimizer = OPTIMIZER
    assert trainer.train(batch, between=("v", "w"))["version"] == "w"
    publication = trainer.call("publish", version="w", dir=str(tmp_path / "published"))
    with pytest.raises(ValueError, match="trust_remote_code"):
        fixtures.load(fixtures.make_worker(), own, publication)
    sampler = fixtures.make_worker(trust_remote_code=True)
    fixtures.load(sampler, own, publication)
    assert type(sampler.engine.model).__name__ == "OwnForCausalLM"
    sampler.operations["generate"](fixtures.slab_arguments("w", draws=1, samples=1), OperationIO.alone())


def why(model: Path, *, trusted: bool) -> str | None:
    return model_code.why_not({"name": "n/m", "directory": str(model), "trusted": trusted})


def test_why_not_refuses_code_that_is_needed_and_not_trusted(own: Path) -> None:
    assert why(own, trusted=False) == (
        "Cannot open model 'n/m' because it needs its own Python code (modeling_own.py) and "
        "model.trust_remote_code is false: that code would run in the workers with your rights. Fix: "
        "read it, then set model.trust_remote_code: true; or name a model that transformers can open "
        "by itself"
    )
    assert why(own, trusted=True) is None


def test_why_not_lets_a_model_pass_that_transformers_opens_without_its_code(own: Path) -> None:
    change(own, model_type="qwen2")
    assert why(own, trusted=False) is None
    config = json.loads((own / "config.json").read_text())
    del config["auto_map"]
    (own / "config.json").write_text(json.dumps(config))
    assert (why(own, trusted=False), why(own, trusted=True)) == (None, None)


def test_why_not_runs_no_code(own: Path) -> None:
    (own / "modeling_own.py").write_text("raise SystemExit('it ran')")
    assert why(own, trusted=False) is not None
    assert why(own, trusted=True) is None


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda own: (own / "modeling_own.py").unlink(), "its code modeling_own.py cannot be loaded: "),
        (
            lambda own: (own / "modeling_own.py").write_text("import no_such_package_at_all"),
            "cannot be loaded: .*no_such_package_at_all.* Fix: install what it imports",
        ),
        (
            lambda own: change(own, auto_map={"AutoConfig": "other/repo--modeling.OwnConfig"}),
            "its code is in a different repository, 'other/repo': nothing fixes its version",
        ),
    ],
)
def test_why_not_refuses_trusted_code_that_is_not_whole(own: Path, break_it: Any, says: str) -> None:
    break_it(own)
    answer = why(own, trusted=True)
    assert answer is not None and "\n" not in answer
    assert re.search(says, answer), answer
