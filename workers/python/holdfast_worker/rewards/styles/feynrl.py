"""FeynRL's `compute_score(prompt_data, response_data)`, and the `batch` that it may carry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from holdfast_worker.rewards.styles.reading import (
    NOT_APPLICABLE,
    Answer,
    BadReturn,
    Score,
    answer_of,
    listed,
    number,
    token_scores,
)
from holdfast_worker.rewards.styles.style import Scorer, Settle, Style
from holdfast_worker.rewards.styles.target import Target

if TYPE_CHECKING:
    from holdfast_worker.rewards.exchange import FunctionSample

GIVEN = ("prompt_data", "response_data")
PARTS = 3  # Rewards, whether they are per token, and the threshold of a right sample.


def _recognise(target: Target) -> str | None:
    is_feynrl = target.is_function and set(GIVEN) <= target.names
    return target.describe(GIVEN) if is_feynrl and _batch_of(target) is None else None


def _recognise_batch(target: Target) -> str | None:
    if not target.is_function:
        return None
    if set(GIVEN) <= target.names and _batch_of(target) is not None:
        return f"{target.describe(GIVEN)}, and its attribute `batch`"
    return "its first parameter pairs" if target.places[:1] == ("pairs",) else None


def _batch_of(target: Target) -> Any:
    batch = getattr(target.value, "batch", None)
    return batch if callable(batch) else None


def _bind(target: Target) -> Scorer:
    target.require_places("feynrl", len(GIVEN))

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        (sample,) = samples
        returned = settle(target.value(*_pair(sample)))
        return [answer_of(_read, returned, sample)]

    return Scorer(needs=(), score=score)


def _bind_batch(target: Target) -> Scorer:
    batch = Target.of(_batch_of(target) or target.value)
    batch.require_places("feynrl_batch", 1)

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        returned = settle(batch.value([_pair(sample) for sample in samples]))
        values = listed("results", returned, len(samples))
        return [
            answer_of(_read, value, sample) for value, sample in zip(values, samples, strict=True)
        ]

    return Scorer(needs=(), score=score)


def _pair(sample: FunctionSample) -> tuple[dict[str, Any], SimpleNamespace]:
    """`solution` is the column of that name, else the row's reference answer."""
    prompt = {
        "solution": sample.get("answer"),
        **sample["columns"],
        "text": sample["prompt"],
        "prompt_token_ids": sample.get("prompt_ids", []),
    }
    response = SimpleNamespace(
        text=sample["completion"],
        token_ids=sample.get("token_ids", []),
        finish_reason="length" if sample.get("stop") == "length" else "stop",
    )
    return prompt, response


def _read(returned: Any, sample: FunctionSample) -> Score:
    """The sum of the rewards, and `right` by the threshold. Unless they are per token, all but the
    last one are 0.
    """
    if returned is None:
        return NOT_APPLICABLE
    if not isinstance(returned, tuple) or len(cast("tuple[Any, ...]", returned)) != PARTS:
        raise BadReturn(
            f"returned {returned!r:.200}: expected (rewards, is_per_token, correct_threshold)"
        )
    rewards, is_per_token, threshold = cast("tuple[Any, Any, Any]", returned)
    tokens = token_scores(rewards, len(sample.get("token_ids", [])))
    total = math.fsum(tokens)
    right = {"right": float(total > number("correct_threshold", threshold))}
    return Score(total, right, tokens if is_per_token else None)


FEYNRL = Style(
    name="feynrl",
    unit="sample",
    signature="compute_score(prompt_data, response_data)",
    recognise=_recognise,
    bind=_bind,
)
FEYNRL_BATCH = Style(
    name="feynrl_batch",
    unit="group",
    signature="compute_score.batch(pairs)",
    recognise=_recognise_batch,
    bind=_bind_batch,
)
