"""What the engine sends is whole: nothing is missing, and nothing unknown is passed over."""

from __future__ import annotations

import dataclasses

import pytest

from holdfast_worker.operation import BadDataError
from holdfast_worker.wire import types as wire_types
from holdfast_worker.wire.types import RewardSpec, TrainerTrain
from holdfast_worker.wire.wire import Whole
from wire_examples import example

CLASSES = [
    one
    for one in vars(wire_types).values()
    if isinstance(one, type) and issubclass(one, Whole) and one is not Whole
]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_no_field_has_a_default_and_each_is_read_by_its_name(cls):
    assert all(field.default is dataclasses.MISSING for field in dataclasses.fields(cls))
    sent = example(cls)
    read = cls.of(sent)
    assert {
        field.name.removesuffix("_"): getattr(read, field.name) for field in dataclasses.fields(cls)
    } == sent
    for name in sent:
        with pytest.raises(
            BadDataError, match=f"Cannot read {cls.__name__} because it has no field '{name}'"
        ):
            cls.of({key: value for key, value in sent.items() if key != name})
        with pytest.raises(BadDataError, match=f"because {name} is .*, not "):
            cls.of({**sent, name: object()})
    with pytest.raises(BadDataError, match="it has an unknown field 'extra'"):
        cls.of({**sent, "extra": 1})


def test_there_are_specs_and_arguments_of_every_role():
    assert {RewardSpec, TrainerTrain} < set(CLASSES)
    assert len(CLASSES) > 10
