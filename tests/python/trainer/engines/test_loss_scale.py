"""float16: the scale of the loss, and steps that its overflow must not lose."""

from __future__ import annotations

import pytest

from holdfast_worker.trainer.engines import loss_scale
from holdfast_worker.trainer.engines.loss_scale import START, VALUE_MAX, LossScale
from test_trainer_packing import supervised
from torch_trainers import LENGTHS, published, steps
from trainer_harness import SUPERVISED_LOSS, Trainer, trajectory_batch

VERSIONS = ["v0", "v1", "v2", "v3"]


def started(directory, *, value=None, **spec):
    trainer = Trainer(directory, **{"dtype": "float16", **spec})
    trainer.create()
    trainer.load()
    if value is not None:
        trainer.worker.engine.loss_scale.value = value
    return trainer


def scales(records):
    return [record["loss_scale"] for record in records]


def test_the_scale_doubles_after_enough_steps_and_halves_down_to_one(monkeypatch):
    monkeypatch.setattr(loss_scale, "GROWTH_STEPS", 2)
    scale = LossScale("float16")
    seen = []
    for _ in range(5):
        scale.count_step()
        seen.append(scale.value)
    assert seen == [START, 2 * START, 2 * START, 4 * START, 4 * START]
    assert scale.halve() and scale.state() == {"value": 2 * START, "steps": 0}
    while scale.halve():
        pass
    assert scale.value == 1 and not scale.halve()
    scale.value = VALUE_MAX
    for _ in range(2):
        scale.count_step()
    assert scale.value == VALUE_MAX


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_other_types_have_no_scale(dtype):
    scale = LossScale(dtype)
    for _ in range(loss_scale.GROWTH_STEPS):
        scale.count_step()
    assert scale.value == 1 and not scale.halve() and not scale.changes
    loss = object()
    assert scale.scaled(loss) is loss


def test_steps_in_float16_are_those_in_float32_up_to_rounding(tmp_path):
    half = steps(started(tmp_path / "half"), VERSIONS)
    whole = steps(started(tmp_path / "whole", dtype="float32"), VERSIONS)
    assert scales(half) == [START] * 3
    for ours, theirs in zip(half, whole, strict=True):
        assert "loss_scale" not in theirs
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=2e-3)
        assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=2e-2)


def test_the_scale_keeps_gradients_that_float16_would_lose(tmp_path):
    """Of advantages so small that most gradients are below float16's smallest number."""

    def norm(directory, **how):
        trainer = started(directory, **how)
        batch = trajectory_batch(trainer.artifacts, LENGTHS)
        values = batch["columns"]["advantage"]["values"]
        batch["columns"]["advantage"]["values"] = [value * 1e-6 for value in values]
        return trainer.train(batch, between=("v0", "v1"))["steps"][0]["grad_norm"]

    expected = norm(tmp_path / "whole", dtype="float32")
    assert norm(tmp_path / "scaled") == pytest.approx(expected, rel=2e-2)
    assert norm(tmp_path / "unscaled", value=1.0) < 0.5 * expected


def test_a_step_whose_scaled_gradients_overflow_is_taken_with_a_smaller_scale(tmp_path):
    over = started(tmp_path / "over", value=2.0**20)
    records = steps(over, VERSIONS)
    found = records[0]["loss_scale"]
    assert scales(records) == [found] * 3 and 1 < found < 2.0**20
    assert not any("skipped" in record for record in records)
    right = started(tmp_path / "right", value=found)
    assert steps(right, VERSIONS) == records
    assert published(right, "v3")["digest"] == published(over, "v3")["digest"]


def test_a_step_that_is_taken_again_has_the_same_dropout(tmp_path):
    def losses(directory, value):
        trainer = started(directory, value=value, dropout=0.3)
        answer = trainer.train(supervised(), between=("v0", "v1"), loss=SUPERVISED_LOSS)
        return [step["loss"] for step in answer["steps"]], answer["steps"][0]["loss_scale"]

    again, found = losses(tmp_path / "over", 2.0**20)
    assert found < 2.0**20
    assert losses(tmp_path / "right", found) == (again, found)


@pytest.mark.parametrize(
    ("advantage", "cause", "passes"), [(1e300, "loss", 1), (1e30, "grad_norm", 4)]
)
def test_what_no_scale_helps_is_skipped_and_leaves_the_scale(tmp_path, advantage, cause, passes):
    trainer = started(tmp_path, value=2.0**3)
    batch = trajectory_batch(trainer.artifacts, LENGTHS)
    batch["columns"]["advantage"]["values"][5] = advantage
    tries = []
    step = trainer.worker.engine.step
    trainer.worker.engine.step = lambda lr: tries.append(lr) or step(lr)
    (record,) = trainer.train(batch, between=("v0", "v1"), non_finite_max=3)["steps"]
    assert record["skipped"]["cause"] == cause
    assert record["skipped"]["sequence"] == 5
    assert len(tries) == passes
    assert trainer.worker.engine.loss_scale.state() == {"value": 2.0**3, "steps": 0}


def test_a_checkpoint_continues_with_its_scale_bit_for_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(loss_scale, "GROWTH_STEPS", 2)
    trainer = started(tmp_path, value=2.0**10)
    first = steps(trainer, VERSIONS[:2])
    checkpoint = trainer.call("save", version="v1", dir=str(tmp_path / "checkpoint"))
    rest = steps(trainer, VERSIONS[1:])
    assert scales(first + rest) == [2.0**10, 2.0**10, 2.0**11]
    digest = published(trainer, "v3")["digest"]

    again = Trainer(tmp_path, dtype="float16")
    again.load("v1", checkpoint)
    assert steps(again, VERSIONS[1:]) == rest
    assert published(again, "v3", "again")["digest"] == digest
    again.load()
    assert scales(steps(again, VERSIONS[:2])) == [START]
