"""Holdfast's own signature: names among prompt, completion, row and tokens; others are columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast_worker.rewards.styles.reading import Answer, answer_of, checked
from holdfast_worker.rewards.styles.style import Scorer, Settle, Style
from holdfast_worker.rewards.styles.target import Target

if TYPE_CHECKING:
    from holdfast_worker.rewards.exchange import FunctionSample

GIVEN = ("prompt", "completion", "row", "tokens")


def _recognise(target: Target) -> str | None:
    if not target.is_function:
        return None
    if target.names.intersection(GIVEN):
        return target.describe(GIVEN)
    return "it has no other framework's parameters: each is a column"


def _bind(target: Target) -> Scorer:
    target.require_columns("holdfast")
    columns = target.columns(GIVEN)

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        (sample,) = samples
        row = row_of(sample)
        arguments = target.accepted(
            {
                "prompt": sample["prompt"],
                "completion": sample["completion"],
                "row": row,
                "tokens": sample.get("tokens"),
            }
        )
        arguments |= {name: row[name] for name in columns if name in row}
        returned = settle(target.value(**arguments))
        return [answer_of(checked, returned, len(sample.get("token_ids", [])))]

    return Scorer(needs=tuple(sorted(columns & target.required)), score=score)


def row_of(sample: FunctionSample) -> dict[str, object]:
    """The columns, and the row's reference answer in place of the file's `answer`."""
    answer = {"answer": sample["answer"]} if "answer" in sample else {}
    return {**sample["columns"], **answer}


HOLDFAST = Style(
    name="holdfast",
    unit="sample",
    signature="f(prompt, completion, row, tokens, COLUMNS)",
    recognise=_recognise,
    bind=_bind,
)
