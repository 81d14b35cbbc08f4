"""verl's custom reward functions, for a sample, and for several as its batch manager calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from holdfast_worker.rewards.styles.reading import Answer, answer_of, listed, scored_with_extras
from holdfast_worker.rewards.styles.style import Scorer, Settle, Style
from holdfast_worker.rewards.styles.target import Target

if TYPE_CHECKING:
    from holdfast_worker.rewards.exchange import FunctionSample

GIVEN: tuple[str, ...] = ("data_source", "solution_str", "ground_truth", "extra_info")
PLURAL: tuple[str, ...] = ("data_sources", "solution_strs", "ground_truths", "extra_infos")


def _recognise(target: Target) -> str | None:
    is_verl = target.is_function and "solution_str" in target.names
    return target.describe(GIVEN) if is_verl else None


def _recognise_batch(target: Target) -> str | None:
    is_verl = target.is_function and "solution_strs" in target.names
    return target.describe(PLURAL) if is_verl else None


def _bind(target: Target) -> Scorer:
    target.require_names("verl", GIVEN)

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        (sample,) = samples
        arguments = dict(zip(GIVEN, _values(sample), strict=True))
        returned = settle(target.value(**target.accepted(arguments)))
        return [answer_of(scored_with_extras, returned)]

    return Scorer(needs=("answer",) if "ground_truth" in target.required else (), score=score)


def _bind_batch(target: Target) -> Scorer:
    target.require_names("verl_batch", PLURAL)

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        columns = [list(column) for column in zip(*map(_values, samples), strict=True)]
        arguments = dict(zip(PLURAL, columns, strict=True))
        returned = settle(target.value(**target.accepted(arguments)))
        values = listed("scores", returned, len(samples))
        return [answer_of(scored_with_extras, value) for value in values]

    return Scorer(needs=("answer",) if "ground_truths" in target.required else (), score=score)


def _values(sample: FunctionSample) -> tuple[object, object, object, object]:
    """In the order of GIVEN. The truth is verl's own column, else the row's reference answer."""
    columns = sample["columns"]
    model = columns.get("reward_model")
    nested = cast("dict[str, Any]", model) if isinstance(model, dict) else {}
    return (
        columns.get("data_source", ""),
        sample["completion"],
        nested.get("ground_truth", sample.get("answer")),
        columns.get("extra_info") or {},
    )


VERL = Style(
    name="verl",
    unit="sample",
    signature="f(data_source, solution_str, ground_truth, extra_info)",
    recognise=_recognise,
    bind=_bind,
)
VERL_BATCH = Style(
    name="verl_batch",
    unit="group",
    signature="f(data_sources, solution_strs, ground_truths, extra_infos)",
    recognise=_recognise_batch,
    bind=_bind_batch,
)
