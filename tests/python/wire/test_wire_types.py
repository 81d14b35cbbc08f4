"""What the engine sends is whole: nothing is missing, and nothing unknown is passed over."""

from __future__ import annotations

import msgspec
import pytest

from holdfast_worker.operation import BadDataError
from holdfast_worker.wire import types as wire_types
from holdfast_worker.wire.received import OneOf, Received, decode, plain
from holdfast_worker.wire.types import Arguments, Optimizer, RewardSpec, TrainerTrain
from wire_examples import example

CLASSES = [
    one
    for one in vars(wire_types).values()
    if isinstance(one, type) and issubclass(one, Received) and one not in (Received, OneOf)
]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_no_field_has_a_default_and_none_is_passed_over(cls):
    sent = example(cls)
    assert plain(decode(cls, sent)) == sent
    tag = cls.__struct_config__.tag_field
    for name in [] if issubclass(cls, OneOf) else sent:
        without = {key: value for key, value in sent.items() if key != name}
        if name != tag:  # A class alone does without the tag that tells it from others.
            with pytest.raises(
                BadDataError,
                match=f"Cannot read {cls.__name__} because it is wrong: Object missing required "
                f"field `{name}`",
            ):
                decode(cls, without)
        with pytest.raises(BadDataError, match=f"because {name}.* is wrong: "):
            decode(cls, {**sent, name: object()})
    with pytest.raises(BadDataError, match="Object contains unknown field `extra`"):
        decode(cls, {**sent, "extra": 1})


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_only_what_may_be_left_out_is_unset(cls):
    fields = msgspec.structs.fields(cls)
    assert {field.default for field in fields} <= {msgspec.NODEFAULT, msgspec.UNSET}
    assert {field.default_factory for field in fields} <= {msgspec.NODEFAULT}


def test_there_are_specs_and_arguments_of_every_role_and_what_is_in_them():
    assert {RewardSpec, TrainerTrain, Optimizer, Arguments} < set(CLASSES)
    assert len(CLASSES) > 40
