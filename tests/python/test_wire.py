"""How an operation receives what came off the line."""

from __future__ import annotations

import pytest

from holdfast_worker.operation import BadDataError
from holdfast_worker.wire import typed
from holdfast_worker.wire_types import TrainerPublish, TrainerTrain


def test_typed_hands_an_operation_its_arguments():
    seen = []

    def publish(args, io):
        seen.append((args, io))
        return {"done": True}

    answer = typed(TrainerPublish, publish)({"version": "v1", "dir": "d", "form": None}, "io")
    assert (answer, seen) == ({"done": True}, [(TrainerPublish("v1", "d", None), "io")])


def test_a_field_that_python_cannot_name_has_an_underscore():
    names = ["from", "to", "batch", "loss", "optimizer", "micro_batch_tokens_max", "logits_chunk_tokens"]
    sent = dict.fromkeys([*names, "packing", "mismatch", "non_finite_max"])
    assert TrainerTrain.of({**sent, "from": "v0"}).from_ == "v0"
    with pytest.raises(BadDataError, match="it has an unknown field 'from_'"):
        TrainerTrain.of({**sent, "from_": "v0"})
