"""How models are opened: their kernels of attention, and code that they bring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sampler_fixtures as fixtures
from holdfast_worker.operation import BadDataError, OperationIO
from own_model import give_code, use_modules
from trainer_harness import OPTIMIZER, Trainer, trajectory_batch


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return fixtures.make_model(tmp_path / "model")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_modules(monkeypatch, tmp_path)
    return give_code(fixtures.make_model(tmp_path / "model"))


def load(trainer: Trainer, model: Path) -> dict[str, Any]:
    arguments = {"version": "v", "model_path": str(model), "optimizer": OPTIMIZER}
    return trainer.call("load", **arguments, checkpoint=None)


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
    references = worker.trainer.references
    with references.borrowed(str(plain), dtype="float32", offload=False) as reference:
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
    slab = fixtures.slab_arguments("w", draws=1, samples=1)
    sampler.operations["generate"](slab, OperationIO.alone())
