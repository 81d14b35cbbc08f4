"""How an operation receives what came off the line."""

from __future__ import annotations

import re

import pytest

from holdfast_worker.operation import BadDataError
from holdfast_worker.wire.operation import typed
from holdfast_worker.wire.types import TrainerLoad, TrainerPublish
from trainer_harness import OPTIMIZER
from wire_examples import example


def test_typed_hands_an_operation_its_arguments():
    seen = []
    sent = {"version": "v1", "dir": "d", "form": None, "average": False}

    def publish(args, io):
        seen.append((args, io))
        return {"done": True}

    answer = typed(TrainerPublish, publish)({**sent}, "io")
    assert answer == {"done": True}
    assert seen == [(TrainerPublish(**sent), "io")]


def test_a_value_of_another_type_is_refused_by_its_place_before_the_operation_runs():
    sent = {**example(TrainerLoad), "optimizer": {**OPTIMIZER, "betas": [0.9, "0.999"]}}
    message = (
        "Cannot read TrainerLoad because optimizer.betas[1] is wrong: Expected `int | float`, got "
        "`str`. Engine and worker are of different versions. Fix: start both from the same "
        "installation"
    )
    with pytest.raises(BadDataError, match=f"^{re.escape(message)}$"):
        typed(TrainerLoad, lambda args, io: pytest.fail("it ran"))(sent, None)
