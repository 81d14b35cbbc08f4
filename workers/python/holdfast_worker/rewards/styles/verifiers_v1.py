"""verifiers v1: a `Task` class with methods marked `@vf.reward`, or one such function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from holdfast_worker.rewards.styles.reading import (
    NOT_APPLICABLE,
    Answer,
    Score,
    answer_of,
    numbers_among,
    value_of,
)
from holdfast_worker.rewards.styles.style import (
    Scorer,
    Settle,
    Style,
    own_row,
    prompt_as_in_row,
    prompt_as_messages,
)
from holdfast_worker.rewards.styles.target import Target

if TYPE_CHECKING:
    from holdfast_worker.rewards.exchange import FunctionSample

GIVEN = ("task", "trace", "runtime")


class Trace:
    """The parts of verifiers' `Trace` that a rollout of one turn has."""

    def __init__(self, sample: FunctionSample, data: Any) -> None:
        reply = SimpleNamespace(role="assistant", content=sample["completion"], tool_calls=None)
        self.task = SimpleNamespace(data=data)
        self.last_reply = sample["completion"].strip()
        self.assistant_messages = [reply]
        self.tool_messages: list[Any] = []
        self.messages = [
            *(SimpleNamespace(**message) for message in prompt_as_messages(sample)),
            reply,
        ]
        self.last_message = reply
        self.num_turns = 1
        self.num_output_tokens = len(sample.get("token_ids", []))
        self.is_truncated = sample.get("stop") == "length"
        self.metrics: dict[str, Any] = {}
        self.info: dict[str, Any] = {}

    def record_metric(self, name: str, value: float) -> None:
        self.metrics[name] = value

    def record_metrics(self, values: Mapping[str, float]) -> None:
        self.metrics.update(values)


def _recognise(target: Target) -> str | None:
    if inspect.isclass(target.value):
        rewards = _marked(target.value, "reward")
        return f"its methods marked as rewards: {', '.join(rewards)}" if rewards else None
    if getattr(target.value, "reward", None) is True:
        return "it is marked as a reward"
    return target.describe(("trace",)) if target.is_function and "trace" in target.names else None


def _marked(task: type, mark: str) -> list[str]:
    """The methods that carry a mark of verifiers' decorators, most derived ones first."""
    names = {name for owner in task.__mro__ for name in vars(owner)}
    return sorted(name for name in names if getattr(getattr(task, name, None), mark, None) is True)


def _bind(target: Target) -> Scorer:
    value: Any = target.value
    is_class = inspect.isclass(value)
    rewards = _marked(value, "reward") if is_class else []
    metrics = [
        name
        for name in (_marked(value, "metric") if is_class else [])
        if "runtime" not in Target.of(getattr(value, name)).required
    ]
    for name in rewards if is_class else [None]:
        method = target if name is None else Target.of(getattr(value, name))
        _require_no_runtime(method, name)

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        (sample,) = samples
        data = _data_of(value, sample)
        trace = Trace(sample, data)
        task: Any = value(data) if is_class else None
        for function in [getattr(task, name) for name in metrics]:
            trace.record_metrics(_by_name(function, _called(function, trace, settle)))
        functions = [getattr(task, name) for name in rewards] if is_class else [value]
        results = [(function, _called(function, trace, settle)) for function in functions]
        return [answer_of(_sum, results, trace)]

    return Scorer(needs=(), score=score)


def _require_no_runtime(method: Target, name: str | None) -> None:
    more = sorted(method.required.difference((*GIVEN, "self")))
    if "runtime" in method.required:
        more = ["runtime"]
    if more:
        raise TypeError(
            f"Cannot call {name or 'it'} as verifiers_v1 does because it needs {', '.join(more)}: "
            "a rollout here has task and trace, and no runtime"
        )


def _data_of(value: Any, sample: FunctionSample) -> Any:
    """The task's data class with the row's columns; without one, their plain namespace."""
    fields = {**own_row(sample), "prompt": prompt_as_in_row(sample)}
    if not hasattr(value, "data_type"):
        return SimpleNamespace(**fields)
    return value.data_type()(**fields)


def _called(function: Callable[..., Any], trace: Trace, settle: Settle) -> Any:
    arguments = {"task": trace.task.data, "trace": trace}
    names = Target.of(function).names
    return settle(function(**{name: arguments[name] for name in names if name in arguments}))


def _by_name(function: Callable[..., Any], result: Any) -> Mapping[str, Any]:
    """What it returned: several by name, or one by its own."""
    is_many = isinstance(result, Mapping)
    return cast("Mapping[str, Any]", result) if is_many else {function.__name__: result}


def _sum(results: Sequence[tuple[Callable[..., Any], Any]], trace: Trace) -> Score:
    """The weighted sum of what applies; a reward may return several, by name."""
    total: float | None = None
    metrics = numbers_among(trace.metrics)
    for function, result in results:
        weight: float = getattr(function, "_vf_weight", 1.0)
        for name, value in _by_name(function, result).items():
            score = value_of(value)
            if score.value is not None:
                total = (total or 0.0) + weight * score.value
                metrics[name] = score.value
    return NOT_APPLICABLE if total is None else Score(total, metrics)


VERIFIERS_V1 = Style(
    name="verifiers_v1",
    unit="sample",
    signature="@vf.reward f(self, trace) of a Task",
    recognise=_recognise,
    bind=_bind,
)
