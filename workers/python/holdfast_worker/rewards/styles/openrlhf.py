"""OpenRLHF's `reward_func(queries, prompts, labels)`, which returns a dict of tensors or lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from holdfast_worker.rewards.styles.reading import (
    Answer,
    BadReturn,
    answer_of,
    listed,
    numbers_among,
    plain,
    value_of,
)
from holdfast_worker.rewards.styles.style import Scorer, Settle, Style
from holdfast_worker.rewards.styles.target import Target

if TYPE_CHECKING:
    from holdfast_worker.rewards.exchange import FunctionSample

GIVEN = ("queries", "prompts", "labels")


def _recognise(target: Target) -> str | None:
    is_openrlhf = target.is_function and {"queries", "labels"} <= target.names
    return target.describe(GIVEN) if is_openrlhf else None


def _bind(target: Target) -> Scorer:
    target.require_places("openrlhf", len(GIVEN))

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        returned = settle(
            target.value(
                [sample["prompt"] + sample["completion"] for sample in samples],
                [sample["prompt"] for sample in samples],
                [sample.get("answer") for sample in samples],
            )
        )
        answer = cast("dict[str, Any]", returned) if isinstance(returned, dict) else None
        if answer is not None and "rewards" not in answer:
            keys = sorted(map(str, answer))
            raise BadReturn(f"returned a dict without 'rewards': its keys are {keys}")
        rewards = cast("Any", returned) if answer is None else answer["rewards"]
        values = listed("rewards", rewards, len(samples))
        logs = _logs(answer or {}, len(samples))
        return [answer_of(value_of, value, log) for value, log in zip(values, logs, strict=True)]

    return Scorer(needs=(), score=score)


def _logs(returned: dict[str, Any], count: int) -> list[dict[str, float]]:
    """The numbers of each sample: `scores` as `filter_score`, and `extra_logs`, where a single
    number is every sample's.
    """
    extra: object = returned.get("extra_logs")
    every = dict(cast("dict[Any, Any]", extra)) if isinstance(extra, dict) else {}
    if returned.get("scores") is not None:
        every["filter_score"] = returned["scores"]
    lists = {name: plain(value) for name, value in every.items()}
    return [
        numbers_among({name: _at(value, place, count) for name, value in lists.items()})
        for place in range(count)
    ]


def _at(value: Any, place: int, count: int) -> Any:
    if not isinstance(value, (list, tuple)):
        return value
    values = cast("list[Any]", value)
    return values[place] if len(values) == count else None


OPENRLHF = Style(
    name="openrlhf",
    unit="group",
    signature="reward_func(queries, prompts, labels, **kwargs)",
    recognise=_recognise,
    bind=_bind,
)
