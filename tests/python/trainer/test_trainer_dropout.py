"""
Dropout: off where log-probabilities are compared, on in supervised training if asked for, and
redone to the bit.
"""

from __future__ import annotations

import msgpack
import numpy as np
import pytest

from test_trainer_packing import supervised
from trainer_harness import SUPERVISED_LOSS, Trainer, trajectory_batch

LORA = {"rank": 4, "alpha": 8, "targets": "all_linear", "quantize": None, "publish": "merged"}
BY_ADAPTERS = {"lora": {**LORA, "dropout": 0.3}}


def started(directory, **spec):
    trainer = Trainer(directory, **spec)
    trainer.create()
    trainer.load()
    return trainer


def train(trainer, k):
    """The losses of two steps, of the k-th batch."""
    answer = trainer.train(supervised(), between=(f"v{k}", f"v{k + 1}"), loss=SUPERVISED_LOSS)
    return [step["loss"] for step in answer["steps"]]


@pytest.mark.parametrize(
    "spec", [{"dropout": 0.3}, {"dropout": 0.3, "gradient_checkpointing": True}, BY_ADAPTERS]
)
def test_dropout_changes_the_loss_and_a_redo_draws_it_again(tmp_path, spec):
    trainer = started(tmp_path / "on", **spec)
    first = train(trainer, 0)
    checkpoint = trainer.call("save", version="v1", dir=str(tmp_path / "on/checkpoint"))
    second = train(trainer, 1)
    trainer.load("v1", checkpoint)
    assert train(trainer, 1) == second
    off = {"lora": {**LORA, "dropout": 0}} if "lora" in spec else {}
    plain = train(started(tmp_path / "off", **off), 0)
    assert first != plain and abs(first[0] - plain[0]) < 0.5
    assert train(started(tmp_path / "twice", **spec), 0) == first


def test_scoring_leaves_nothing_to_chance(tmp_path):
    trainer = started(tmp_path, dropout=0.5)
    batch = trainer.artifacts.put_json(trajectory_batch(trainer.artifacts, [[9, 12]]))

    def scored():
        args = {"version": "v0", "batch": batch, "columns": ["old_logp"], "reference_path": None}
        trainer.call("score", **args, micro_batch_tokens_max=64)
        return np.concatenate(
            [np.frombuffer(v, "<f4") for v in msgpack.unpackb(trainer.io.blobs[0])["values"]]
        )

    first = scored()
    assert np.array_equal(scored(), first)
    assert trainer.worker.engine.module.training
