"""How an operation receives what came off the line."""

from __future__ import annotations

import re

import pytest

from holdfast_worker.operation import BadDataError
from holdfast_worker.wire.types import TrainerLoad, TrainerPublish, TrainerTrain
from holdfast_worker.wire.wire import typed
from trainer_harness import OPTIMIZER
from wire_examples import example


def test_typed_hands_an_operation_its_arguments():
    seen = []

    def publish(args, io):
        seen.append((args, io))
        return {"done": True}

    answer = typed(TrainerPublish, publish)({"version": "v1", "dir": "d", "form": None}, "io")
    assert (answer, seen) == ({"done": True}, [(TrainerPublish("v1", "d", None), "io")])


def test_a_field_that_python_cannot_name_has_an_underscore():
    sent = example(TrainerTrain)
    assert TrainerTrain.of({**sent, "from": "v0"}).from_ == "v0"
    with pytest.raises(BadDataError, match="it has an unknown field 'from_'"):
        TrainerTrain.of({**sent, "from_": "v0"})


def test_a_value_of_another_type_is_refused_by_its_place_before_the_operation_runs():
    sent = {**example(TrainerLoad), "optimizer": {**OPTIMIZER, "betas": [0.9, "0.999"]}}
    message = (
        'Cannot read TrainerLoad because optimizer.betas[1] is "0.999", not a number. Engine and '
        "worker are of different versions. Fix: start both from the same installation"
    )
    with pytest.raises(BadDataError, match=f"^{re.escape(message)}$"):
        typed(TrainerLoad, lambda args, io: pytest.fail("it ran"))(sent, None)


def test_what_is_no_object_is_refused():
    with pytest.raises(BadDataError, match=r"TrainerPublish because it is \[\], not an object"):
        TrainerPublish.of([])
