"""A trainer on torch that has loaded a model, and what tests do with it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from trainer_harness import (
    Trainer,
    trajectory_batch,
)

LENGTHS = [[16, 9, 12, 7]] * 3


@pytest.fixture
def trainer(tmp_path):
    trainer = Trainer(tmp_path)
    trainer.create()
    trainer.load()
    return trainer


def steps(trainer, versions, **options):
    """Trains from each version to the next; the batch depends on the version."""
    answers = []
    for before, after in pairwise(versions):
        batch = trajectory_batch(trainer.artifacts, LENGTHS, seed=int(before[1:]))
        answers.append(trainer.train(batch, between=(before, after), **options))
    return [step for answer in answers for step in answer["steps"]]


def published(trainer, version, name="out"):
    return trainer.call("publish", version=version, dir=str(trainer.directory / name))
