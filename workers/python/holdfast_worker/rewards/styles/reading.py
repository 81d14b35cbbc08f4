"""What a reward function returned for a sample, as the pool counts it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ParamSpec, cast

P = ParamSpec("P")
METRICS_MAX = 100
NAME_CHARS_MAX = 200


class BadReturn(Exception):
    """The function returned something that is not a finite score."""


@dataclass(frozen=True)
class Score:
    """`value` None: the reward does not apply to the sample; it then has no metrics. `tokens`: what
    each token of the completion earns, if the function says it; `value` is then their sum.
    """

    value: float | None
    metrics: dict[str, float] = field(default_factory=dict[str, float])
    tokens: list[float] | None = None


@dataclass(frozen=True)
class Raised:
    """The user's code raised for this sample alone; others of the same call have their scores."""

    error: BaseException


Answer = Score | BadReturn | Raised
NOT_APPLICABLE = Score(None)


def answer_of(read: Callable[P, Score], *args: P.args, **kwargs: P.kwargs) -> Answer:
    """A sample's own answer: what is wrong with it is no other sample's matter."""
    try:
        return read(*args, **kwargs)
    except BadReturn as bad:
        return bad


def checked(returned: Any, token_count: int = 0) -> Score:
    """A number, or a dict with `score` and numbers beside it. None as the score: there is nothing
    to grade by, and the other numbers are ignored. `token_scores` in place of `score`: one number
    for each token of the completion.
    """
    if not isinstance(returned, dict) or "token_scores" not in returned:
        return _scored(returned, _numbers_beside)
    every = dict(cast("dict[object, Any]", returned))
    if "score" in every:
        raise BadReturn("returned 'score' and 'token_scores': the score is the tokens' sum")
    tokens = token_scores(every.pop("token_scores"), token_count)
    return Score(math.fsum(tokens), _numbers_beside(every), tokens)


def token_scores(returned: Any, count: int) -> list[float]:
    """One number for each of a completion's tokens. Raises BadReturn if they are not."""
    values = plain(returned)
    if not isinstance(values, (list, tuple)) or len(cast("list[Any]", values)) != count:
        raise BadReturn(f"returned rewards {values!r:.200}: expected {count}, one for each token")
    return [number("rewards", value) for value in cast("list[Any]", values)]


def scored_with_extras(returned: Any) -> Score:
    """A number, or a dict with `score` and anything beside it, of which numbers are metrics and
    texts are ignored. `acc` also says whether the sample is right.
    """
    return _scored(returned, _numbers_among_extras)


def _scored(returned: Any, read_metrics: Callable[[dict[object, Any]], dict[str, float]]) -> Score:
    if not isinstance(returned, dict):
        return value_of(returned)
    every = cast("dict[object, Any]", returned)
    if "score" not in every:
        raise BadReturn(f"returned a dict without 'score': its keys are {sorted(map(str, every))}")
    if every["score"] is None:
        return NOT_APPLICABLE
    return value_of(every["score"], read_metrics(every))


def _numbers_beside(returned: dict[object, Any]) -> dict[str, float]:
    inner: object = returned.get("metrics") or {}
    if not isinstance(inner, dict):
        raise BadReturn(
            f"returned metrics that are a {type(inner).__name__}: expected a dict of numbers"
        )
    more = {**returned, **cast("dict[object, Any]", inner)}
    if len(more) > METRICS_MAX:
        raise BadReturn(f"returned {len(more)} numbers: expected at most {METRICS_MAX}")
    named = {printable(str(key), NAME_CHARS_MAX): value for key, value in more.items()}
    return {
        name: number(name, value)
        for name, value in named.items()
        if name not in ("score", "metrics")
    }


def _numbers_among_extras(returned: dict[object, Any]) -> dict[str, float]:
    metrics = numbers_among({name: value for name, value in returned.items() if name != "score"})
    right = {"right": metrics["acc"]} if "acc" in metrics else {}
    return {**metrics, **right}


def value_of(returned: Any, metrics: Mapping[str, float] | None = None) -> Score:
    """A number, or None, which has no metrics."""
    if returned is None:
        return NOT_APPLICABLE
    return Score(number("score", returned), dict(metrics or {}))


def number(name: str, value: Any) -> float:
    """Raises BadReturn if it is no finite number."""
    if hasattr(value, "item"):
        try:
            value = value.item()  # numpy's and torch's scalars; an array of several refuses.
        except (RuntimeError, ValueError, TypeError):
            pass
    if not isinstance(value, (int, float)):  # bool is an int: a grader may say True.
        raise BadReturn(
            f"returned {name} {value!r:.200}, a {type(value).__name__}: expected a number"
        )
    try:
        converted = float(value)
    except OverflowError:
        raise BadReturn(
            f"returned {name}, an integer that no float can hold: expected a finite number"
        ) from None
    if not math.isfinite(converted):
        raise BadReturn(f"returned {name} {converted}: expected a finite number")
    return converted


def numbers_among(values: Mapping[Any, Any]) -> dict[str, float]:
    """The finite numbers of a mapping, at most `METRICS_MAX`, by printable names."""
    found: dict[str, float] = {}
    for name, value in values.items():
        read = answer_of(value_of, value)
        if isinstance(read, Score) and read.value is not None and len(found) < METRICS_MAX:
            found[printable(str(name), NAME_CHARS_MAX)] = read.value
    return found


def plain(value: Any) -> Any:
    """The list of an array of numpy or torch, neither of which is imported here; else the value."""
    return value.tolist() if hasattr(value, "tolist") else value


def listed(what: str, returned: Any, count: int) -> list[Any]:
    """The values of a list, a tuple or an array. Raises BadReturn unless there are `count`."""
    values = plain(returned)
    if not isinstance(values, (list, tuple)):
        raise BadReturn(
            f"returned {what} {values!r:.200}, a {type(returned).__name__}: "
            f"expected a list of {count}, one for each sample"
        )
    if len(cast("list[Any]", values)) != count:
        raise BadReturn(
            f"returned {len(cast('list[Any]', values))} {what}: expected {count}, "
            "one for each sample"
        )
    return list(cast("list[Any]", values))


def printable(text: str, chars_max: int) -> str:
    """A text that can be sent: half of a surrogate pair is not UTF-8."""
    return text[:chars_max].encode("utf-8", "backslashreplace").decode()
