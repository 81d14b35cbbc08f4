"""slime's `custom_rm(args, sample)`, and `custom_rm(args, samples)` of `--group-rm`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from holdfast_worker.rewards.styles.reading import Answer, answer_of, listed, scored_with_extras
from holdfast_worker.rewards.styles.style import Scorer, Settle, Style, Unavailable
from holdfast_worker.rewards.styles.target import Target

if TYPE_CHECKING:
    from holdfast_worker.rewards.exchange import FunctionSample

ARGS = Unavailable("args", "write the value into the file, or read it from the row's columns")


class Status(Enum):
    COMPLETED = "completed"
    TRUNCATED = "truncated"


@dataclass
class Sample:
    """The fields of slime's `Sample` that a reward reads. `tokens`: of prompt and response."""

    group_index: int | None
    index: int | None
    prompt: str
    tokens: list[int]
    response: str
    response_length: int
    label: str | None
    status: Status
    metadata: dict[str, Any]
    reward: float | dict[str, Any] | None = None
    loss_mask: list[int] | None = None
    remove_sample: bool = False
    multimodal_inputs: dict[str, Any] | None = None
    train_metadata: dict[str, Any] | None = None
    weight_versions: list[str] = field(default_factory=list[str])

    Status = Status


def _recognise(target: Target) -> str | None:
    is_slime = target.is_function and target.places[:2] == ("args", "sample")
    return target.describe(("args", "sample")) if is_slime else None


def _recognise_group(target: Target) -> str | None:
    is_slime = target.is_function and target.places[:2] == ("args", "samples")
    return target.describe(("args", "samples")) if is_slime else None


def _bind(target: Target) -> Scorer:
    target.require_places("slime", 2)

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        (sample,) = _samples_of(samples)
        returned = settle(target.value(ARGS, sample))
        return [answer_of(scored_with_extras, returned)]

    return Scorer(needs=(), score=score)


def _bind_group(target: Target) -> Scorer:
    target.require_places("slime_group", 2)

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        returned = settle(target.value(ARGS, _samples_of(samples)))
        values = listed("scores", returned, len(samples))
        return [answer_of(scored_with_extras, value) for value in values]

    return Scorer(needs=(), score=score)


def _samples_of(samples: Sequence[FunctionSample]) -> list[Sample]:
    """`metadata` is the column of that name, else all columns."""
    inputs: list[Sample] = []
    for place, sample in enumerate(samples):
        metadata = sample["columns"].get("metadata")
        has_metadata = isinstance(metadata, dict)
        token_ids = sample.get("token_ids", [])
        inputs.append(
            Sample(
                group_index=0,
                index=place,
                prompt=sample["prompt"],
                tokens=[*sample.get("prompt_ids", []), *token_ids],
                response=sample["completion"],
                response_length=len(token_ids),
                label=sample.get("answer"),
                status=Status.TRUNCATED if sample.get("stop") == "length" else Status.COMPLETED,
                metadata=cast(
                    "dict[str, Any]", metadata if has_metadata else dict(sample["columns"])
                ),
            )
        )
    return inputs


SLIME = Style(
    name="slime",
    unit="sample",
    signature="custom_rm(args, sample)",
    recognise=_recognise,
    bind=_bind,
)
SLIME_GROUP = Style(
    name="slime_group",
    unit="group",
    signature="custom_rm(args, samples)",
    recognise=_recognise_group,
    bind=_bind_group,
)
