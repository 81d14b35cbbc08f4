"""Reward functions of verifiers 0.x, for a rollout and for a group, and its `Rubric` of several."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_origin

from holdfast_worker.rewards.styles.reading import (
    NOT_APPLICABLE,
    Answer,
    BadReturn,
    Raised,
    Score,
    answer_of,
    listed,
    value_of,
)
from holdfast_worker.rewards.styles.style import (
    Scorer,
    Settle,
    Style,
    completion_as_in_row,
    own_row,
    prompt_as_in_row,
)
from holdfast_worker.rewards.styles.target import Target

if TYPE_CHECKING:
    from holdfast_worker.rewards.exchange import FunctionSample

OF_SAMPLE = ("prompt", "completion", "answer", "info", "state", "task")
OF_GROUP = ("prompts", "completions", "answers", "infos", "states", "tasks")
ONLY_HERE = frozenset({"answers", "infos", "states", "tasks"})
# TRL's, and what its functions have for columns: verifiers passes nothing else to a group.
OF_TRL = frozenset({"completion_ids", "trainer_state", "log_extra", "log_metric"})
OF_OTHERS = OF_TRL | {"row", "tokens", "queries"}


def _recognise(target: Target) -> str | None:
    if not target.is_function or target.names & OF_OTHERS:
        return None
    is_rollout = "state" in target.names and not target.names.intersection(OF_GROUP)
    return target.describe(OF_SAMPLE) if is_rollout else None


def _recognise_group(target: Target) -> str | None:
    if not target.is_function or target.names & OF_OTHERS:
        return None
    if not target.names.intersection(("completions", "states")):
        return None
    if target.names & ONLY_HERE:
        return target.describe(OF_GROUP)
    is_plain = not target.takes_all and target.names <= set(OF_GROUP)
    return target.describe(OF_GROUP) if is_plain else None


def _recognise_rubric(target: Target) -> str | None:
    if inspect.isclass(target.value) or not _rubrics(target.value):
        return None
    return "it has funcs and weights"


def _rubrics(value: Any) -> list[Any]:
    """The rubric itself, or those of a group of rubrics."""
    if isinstance(getattr(value, "funcs", None), list):
        return [value] if isinstance(getattr(value, "weights", None), list) else []
    parts: object = getattr(value, "rubrics", None)
    if not isinstance(parts, list):
        return []
    return [rubric for part in cast("list[Any]", parts) for rubric in _rubrics(part)]


def _bind(target: Target) -> Scorer:
    one = _Function(target, {}, weight=1.0, is_group=False)

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        (sample,) = samples
        return [one.of_sample(sample, settle)]

    return Scorer(needs=one.needs, score=score)


def _bind_group(target: Target) -> Scorer:
    one = _Function(target, {}, weight=1.0, is_group=True)
    return Scorer(needs=(), score=one.of_group)


def _bind_rubric(target: Target) -> Scorer:
    functions: list[_Function] = []
    for rubric in _rubrics(target.value):
        objects: object = getattr(rubric, "class_objects", None)
        objects_by_name = (
            dict(cast("dict[str, object]", objects)) if isinstance(objects, dict) else {}
        )
        if "parser" not in objects_by_name and getattr(rubric, "parser", None) is not None:
            objects_by_name["parser"] = rubric.parser
        for function, weight in zip(rubric.funcs, rubric.weights, strict=True):
            one = Target.of(function)
            functions.append(
                _Function(one, objects_by_name, weight=weight, is_group=_is_group(one))
            )
    if not functions:
        raise TypeError("Cannot use the rubric because it has no functions")
    needs = {name for one in functions for name in one.needs}

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        columns = [
            one.of_group(samples, settle)
            if one.is_group
            else [_attempt(one, sample, settle) for sample in samples]
            for one in functions
        ]
        return [
            _combined(functions, [column[place] for column in columns])
            for place in range(len(samples))
        ]

    return Scorer(needs=tuple(sorted(needs)), score=score)


def _attempt(function: _Function, sample: FunctionSample, settle: Settle) -> Answer:
    try:
        return function.of_sample(sample, settle)
    except Exception as error:
        return Raised(error)


def _combined(functions: Sequence[_Function], answers: Sequence[Answer]) -> Answer:
    """The weighted sum of the functions that apply; a failure of one is the sample's."""
    total: float | None = None
    metrics: dict[str, float] = {}
    for function, answer in zip(functions, answers, strict=True):
        if not isinstance(answer, Score):
            return answer
        if answer.value is not None:
            total = (total or 0.0) + function.weight * answer.value
            metrics[function.name] = answer.value
    return NOT_APPLICABLE if total is None else Score(total, metrics)


def _is_group(target: Target) -> bool:
    returns = inspect.signature(target.value).return_annotation
    text = returns if isinstance(returns, str) else ""
    returns_list = returns is list or get_origin(returns) is list or text.startswith("list")
    return bool(target.names.intersection(OF_GROUP)) or returns_list


class _Function:
    """One function of a rubric, or alone. `objects`: what the rubric passes by name."""

    def __init__(
        self, target: Target, objects: Mapping[str, object], *, weight: float, is_group: bool
    ) -> None:
        self.name: str = getattr(target.value, "__name__", "reward")
        self.weight, self.is_group = weight, is_group
        self._target, self._objects = target, objects
        if "parser" in target.required and "parser" not in objects:
            raise TypeError(
                "Cannot call it as verifiers does because its parser is the rubric's. "
                "Fix: name the Rubric, `path.py:rubric`"
            )
        if is_group:
            target.require_names("verifiers", (*OF_GROUP, *objects))
        else:
            target.require_columns("verifiers")
        columns = () if is_group else target.columns((*OF_SAMPLE, *objects))
        self._columns = frozenset(columns)
        self.needs = tuple(sorted(self._columns & target.required))

    def of_sample(self, sample: FunctionSample, settle: Settle) -> Answer:
        columns = sample["columns"]
        more = set(columns) if self._target.takes_all else self._columns & set(columns)
        arguments = {
            **{name: columns[name] for name in more},
            **dict(zip(OF_SAMPLE, _values(sample), strict=True)),
            **self._objects,
        }
        returned = settle(self._target.value(**self._target.accepted(arguments)))
        return answer_of(value_of, returned)

    def of_group(self, samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        columns = [list(column) for column in zip(*map(_values, samples), strict=True)]
        arguments = {**dict(zip(OF_GROUP, columns, strict=True)), **self._objects}
        returned = settle(self._target.value(**self._target.accepted(arguments)))
        values = listed("scores", returned, len(samples))
        return [answer_of(value_of, value) for value in values]


def _values(sample: FunctionSample) -> tuple[object, ...]:
    """In the order of OF_SAMPLE."""
    answer = own_row(sample).get("answer", "")
    info: object = sample["columns"].get("info", {})
    if isinstance(info, str):  # As verifiers keeps it in a data set.
        try:
            info = json.loads(info)
        except ValueError:
            raise BadReturn("cannot be called: the row's info is not JSON") from None
    state: dict[str, object] = {
        "id": sample["id"],
        "input": sample["columns"],
        "prompt": prompt_as_in_row(sample),
        "completion": completion_as_in_row(sample),
        "answer": answer,
        "info": info,
        "task": sample["columns"].get("task"),
        "is_truncated": sample.get("stop") == "length",
        "trajectory": [],
    }
    return tuple(state if name == "state" else state[name] for name in OF_SAMPLE)


VERIFIERS = Style(
    name="verifiers",
    unit="sample",
    signature="f(prompt, completion, answer, info, state)",
    recognise=_recognise,
    bind=_bind,
)
VERIFIERS_GROUP = Style(
    name="verifiers_group",
    unit="group",
    signature="f(prompts, completions, answers, infos, states)",
    recognise=_recognise_group,
    bind=_bind_group,
)
VERIFIERS_RUBRIC = Style(
    name="verifiers_rubric",
    unit="group",
    signature="Rubric(funcs, weights)",
    recognise=_recognise_rubric,
    bind=_bind_rubric,
)
