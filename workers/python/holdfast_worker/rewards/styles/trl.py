"""TRL's reward functions: `f(prompts, completions, completion_ids, COLUMNS, **kwargs)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from holdfast_worker.rewards.styles.reading import (
    Answer,
    answer_of,
    listed,
    numbers_among,
    value_of,
)
from holdfast_worker.rewards.styles.style import (
    Scorer,
    Settle,
    Style,
    Unavailable,
    completion_as_in_row,
    own_row,
    prompt_as_in_row,
)
from holdfast_worker.rewards.styles.target import Target

if TYPE_CHECKING:
    from holdfast_worker.rewards.exchange import FunctionSample

OF_SAMPLES = ("prompts", "completions", "completion_ids")
OF_THE_TRAINER = ("trainer_state", "log_extra", "log_metric")
GIVEN = (*OF_SAMPLES, *OF_THE_TRAINER)
# Plural names that verifiers passes to functions of a group, and TRL only for columns so named.
OF_VERIFIERS = frozenset({"states", "infos", "tasks", "parser"})
STATE = Unavailable("trainer_state", "a reward must not depend on how far training is")


def _recognise(target: Target) -> str | None:
    if not target.is_function or not target.names.intersection(("completions", "completion_ids")):
        return None
    if target.names & OF_VERIFIERS:
        return None
    surely_group = "answers" in target.names and not target.takes_all
    return None if surely_group else target.describe(GIVEN)


class _Logs:
    """What a call hands to `log_metric` and `log_extra`, as metrics of its samples."""

    def __init__(self, count: int) -> None:
        self.of_all: dict[str, Any] = {}
        self.of_each: dict[str, list[Any]] = {}
        self._count = count

    def log_metric(self, name: str, value: Any) -> None:
        self.of_all[name] = value

    def log_extra(self, column: str, values: Any) -> None:
        each = cast("list[Any]", values) if isinstance(values, list) else []
        if len(each) == self._count:
            self.of_each[column] = each

    def of(self, place: int) -> dict[str, float]:
        each = {name: values[place] for name, values in self.of_each.items()}
        return numbers_among({**each, **self.of_all})


def _bind(target: Target) -> Scorer:
    target.require_columns("trl")
    columns = target.columns(GIVEN)

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        logs = _Logs(len(samples))
        rows = [own_row(sample) for sample in samples]
        # With **kwargs, every column of the rows.
        wanted = frozenset(rows[0]) if target.takes_all else columns
        known = sorted(wanted.intersection(*rows).difference(("prompt", "completion", *GIVEN)))
        arguments: dict[str, object] = {
            **{name: [row[name] for row in rows] for name in known},
            "prompts": [prompt_as_in_row(sample) for sample in samples],
            "completions": [completion_as_in_row(sample) for sample in samples],
            "completion_ids": [sample.get("token_ids", []) for sample in samples],
            "trainer_state": STATE,
            "log_extra": logs.log_extra,
            "log_metric": logs.log_metric,
        }
        returned = settle(target.value(**target.accepted(arguments)))
        values = listed("scores", returned, len(samples))
        return [answer_of(value_of, value, logs.of(i)) for i, value in enumerate(values)]

    return Scorer(needs=tuple(sorted(columns & target.required)), score=score)


TRL = Style(
    name="trl",
    unit="group",
    signature="f(prompts, completions, completion_ids, COLUMNS, **kwargs)",
    recognise=_recognise,
    bind=_bind,
)
