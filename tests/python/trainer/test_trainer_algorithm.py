"""
Algorithms in Python with the trainer's operations: opened, asked for credit, trained, trained again
to the bit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from algorithm_files import KTO, P3O, PLAIN, REWARD_MODEL, loss_of
from loss_expressions import comparison, labelled, preference
from test_trainer_heads import LOSSES, opened, value_batch
from test_trainer_pairs import PAIRS, make, ready, with_reference
from test_trainer_unpaired import MISMATCHED, ROWS, unpaired_batch
from trainer_harness import (
    SUPERVISED_LOSS,
    Trainer,
    trajectory_batch,
)

LENGTHS = [[16, 9, 12, 7]] * 5
FAR = {"pull": "forward"}  # An untrained model is far from what sampled: k3 would leave float32.
DPO = """
import torch

def loss(x, c):
    gain = x.per_sequence_sum(x.logp - x.ref_logp)
    gap = 0.1 * (x.chosen(gain) - x.rejected(gain))
    metrics = {"reward/accuracy": ("pair_mean", (gap > 0).to(gap.dtype)), "reward/margin": ("pair_mean", gap)}
    return {"loss": ("pair_mean", -torch.nn.functional.logsigmoid(gap)), "metrics": metrics}
"""


def python(source: str, part: str = "loss", **settings: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "python": {"file": "my.py", "source": source, "settings": settings, "part": part},
    }


@pytest.fixture
def trainer(tmp_path: Path) -> Trainer:
    trainer = Trainer(tmp_path)
    trainer.create()
    trainer.load()
    return trainer


def steps(trainer: Trainer, count: int, **options: Any) -> list[dict[str, Any]]:
    """Trains the first versions anew."""
    trainer.load()
    answers = [
        trainer.train(
            trajectory_batch(trainer.artifacts, LENGTHS, seed=k),
            between=(f"v{k}", f"v{k + 1}"),
            **options,
        )
        for k in range(count)
    ]
    return [answer["steps"][0] for answer in answers]


def test_steps_are_taken_again_to_the_bit_and_the_cut_changes_the_rounding_alone(
    trainer: Trainer,
) -> None:
    taken = steps(trainer, 3, loss=python(P3O, **FAR), tokens_max=64)
    assert steps(trainer, 3, loss=python(P3O, **FAR), tokens_max=64) == taken
    assert taken[0]["metrics"]["policy/ess"] < 1
    for ours, whole in zip(
        taken, steps(trainer, 3, loss=python(P3O, **FAR), tokens_max=4096), strict=True
    ):
        assert ours["micro_batches"] > whole["micro_batches"]
        assert ours["loss"] == pytest.approx(whole["loss"], rel=1e-4)
        assert ours["grad_norm"] == pytest.approx(whole["grad_norm"], rel=1e-4)


MEAN_LOGP = """
def statistics(x, c):
    return {"logp": x.logp}

def loss(x, c, s):
    ratio = (x.logp - x.old_logp).exp()
    return {"loss": ("token_mean", -ratio * x.advantage), "metrics": {"policy/mean": s.logp / x.n_tokens}}
"""


def test_a_statistic_of_a_stale_batch_is_of_the_policy_as_it_is(trainer: Trainer) -> None:
    """`old_logp` of its stale groups is the sampler's: it saves no forward."""

    def mean(staleness: list[int]) -> float:
        rows = [
            np.full(length, -0.5, np.float32).tobytes() for group in LENGTHS for length in group
        ]
        batch = trajectory_batch(trainer.artifacts, LENGTHS, staleness=staleness)
        artifact = trainer.artifacts.put(msgpack.packb({"values": rows}))
        batch["columns"]["old_logp"] = {"kind": "token", "artifact": artifact}
        trainer.load()
        step = trainer.train(batch, between=("v0", "v1"), loss=python(MEAN_LOGP))["steps"][0]
        return step["metrics"]["policy/mean"]

    assert mean([0] * 20) == pytest.approx(-0.5)
    assert mean([1] * 4 + [0] * 16) < -2  # An untrained model's.


def test_a_file_is_opened_and_assigns_credit_without_a_model(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path)
    source = {key: value for key, value in python(PLAIN)["python"].items() if key != "part"}
    algorithm = trainer.artifacts.put_json(source)
    described = trainer.call("open_algorithm", algorithm=algorithm)
    assert (described["inputs"], described["needs"]) == (["advantage", "logp"], [])
    round_ = {
        "reward": [1.0, 0.0, 0.5],
        "group": [0, 0, 0],
        "stop": ["stop"] * 3,
        "length": [2, 1, 3],
        "coef": {},
    }
    assert trainer.call(
        "credit", algorithm=algorithm, round=trainer.artifacts.put_json(round_)
    ) == {"sequences": 3}
    assert json.loads(trainer.io.blobs[0]) == {"advantage": [0.5, -0.5, 0.0]}


def test_supervised_rows_are_learned_as_by_the_expression(trainer: Trainer) -> None:
    rows = [
        {"row_id": str(place), "prompt": f"copy {place} =", "completion": f"{place}", "columns": {}}
        for place in range(8)
    ]
    batch = {
        "kind": "supervised",
        "rows": rows,
        "temperature": 1,
        "coef": {},
        "updates": [list(range(8))] * 2,
    }
    expected = trainer.train(batch, between=("v0", "v1"), loss=SUPERVISED_LOSS)["steps"]
    trainer.load()
    loss = python(loss_of("{'loss': ('token_mean', -x.logp)}"))
    same(trainer.train(batch, between=("v0", "v1"), loss=loss)["steps"], expected)


def test_pairs_are_learned_as_by_the_expression(trainer: Trainer) -> None:
    batch = ready(trainer, "dpo", PAIRS)
    expected = trainer.train(batch, between=("v0", "v1"), loss=preference(), tokens_max=40)["steps"]
    trainer.load()
    taken = trainer.train(batch, between=("v0", "v1"), loss=python(DPO), tokens_max=40)["steps"]
    same(taken, expected)
    assert taken[0]["metrics"] == pytest.approx(expected[0]["metrics"])


def test_a_reward_model_learns_by_a_file_as_by_the_expression(tmp_path: Path) -> None:
    trainer = make(tmp_path, "reward_model")
    batch = ready(trainer, "reward_model", PAIRS)
    expected = trainer.train(batch, between=("v0", "v1"), loss=comparison(), tokens_max=40)["steps"]
    trainer.load()
    loss = python(REWARD_MODEL)
    taken = trainer.train(batch, between=("v0", "v1"), loss=loss, tokens_max=40)["steps"]
    same(taken, expected)
    assert taken[0]["metrics"] == pytest.approx(expected[0]["metrics"])


def test_labelled_completions_are_learned_as_by_the_expression(trainer: Trainer) -> None:
    batch = with_reference(
        trainer, unpaired_batch(ROWS, MISMATCHED), str(trainer.directory / "model")
    )
    expected = trainer.train(batch, between=("v0", "v1"), loss=labelled(), tokens_max=40)["steps"]
    trainer.load()
    taken = trainer.train(batch, between=("v0", "v1"), loss=python(KTO), tokens_max=40)["steps"]
    same(taken, expected)
    assert taken[0]["micro_batches"] > 1


def test_a_value_model_learns_by_the_files_value_loss_as_by_the_expression(tmp_path: Path) -> None:
    source = (
        PLAIN
        + "def value_loss(x, c):\n    return {'loss': ('token_mean', (x.values - x.returns).square())}\n"
    )
    critic = opened(tmp_path, "value")
    batch = value_batch(critic.artifacts)
    expected = critic.train(batch, between=("v0", "v1"), loss=LOSSES["value"])["steps"]
    critic.load()
    same(
        critic.train(batch, between=("v0", "v1"), loss=python(source, "value_loss"))["steps"],
        expected,
    )


def same(taken: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    for ours, theirs in zip(taken, expected, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
        assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=1e-5)


def test_a_step_on_rows_records_the_tokens_that_they_were_rendered_to(trainer: Trainer) -> None:
    def step(day: str, start: str) -> dict[str, Any]:
        prompt = [{"role": "user", "content": "hi"}]
        row = {"row_id": "a", "prompt": prompt, "completion": "yo", "columns": {}}
        chat = {"template_arguments": {}, "date": day}
        batch = {
            "kind": "supervised",
            "rows": [row],
            "chat": chat,
            "temperature": 1,
            "coef": {},
            "updates": [[0]],
        }
        trainer.load()
        return trainer.train(batch, between=("v0", start), loss=SUPERVISED_LOSS)["steps"][0]

    template = (
        "{{ strftime_now('%d') }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
    )
    (trainer.directory / "model" / "chat_template.jinja").write_text(template)
    first, again, later = step("2026-11-27", "a"), step("2026-11-27", "b"), step("2026-11-28", "c")
    assert (first["loss"], first["tokens_sha256"]) == (again["loss"], again["tokens_sha256"])
    assert first["tokens_sha256"] != later["tokens_sha256"] and first["loss"] != later["loss"]
    assert "tokens_sha256" not in steps(trainer, 1)[0]
