"""`credit(round, c)` of a file: how the rewards of a whole round become advantages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict, cast

import numpy as np

from holdfast_worker.algorithm.algorithm import Algorithm
from holdfast_worker.algorithm.source import AlgorithmError, did_you_mean, telling_line
from holdfast_worker.rng_state import untouched_randomness

# Always present, and what is computed first if a file reads it or lists it in NEEDS.
GIVEN = ("reward", "group", "stop", "length", "token_reward")
Need = Literal["parts", "old_logp", "ref_logp", "values", "bootstrap", "coef"]
NEEDS: tuple[Need, ...] = ("parts", "old_logp", "ref_logp", "values", "bootstrap", "coef")
ASSIGNED = ("advantage", "returns", "coef", "metrics")
HOW = 'return {"advantage": one number for each sequence, or a list of one array of length[i] numbers for each}'


class Assigned(TypedDict):
    """What credit gives a round, as JSON has it."""

    advantage: list[float] | list[list[float]]  # [N] or [N][T]
    returns: NotRequired[list[list[float]]]  # [N][T]
    coef: NotRequired[dict[str, float]]
    metrics: NotRequired[dict[str, float]]


@dataclass(frozen=True)
class RewardPart:
    """One reward of a round by itself."""

    name: str
    weight: float
    paid: np.ndarray  # [N] float64, unweighted; NaN where it does not apply to the sample


class Round:
    """
    A round as `credit` sees it: N sequences at once, numpy, float64. [N]: `reward`, `group` (equal
    for the samples of a prompt), `stop` (a list of texts), `length` (sampled tokens), `bootstrap`.
    [N][T], lists of arrays over the sampled tokens: `token_reward` (None if there is none),
    `old_logp`, `ref_logp`, `values`. `parts`: a list with a `RewardPart` for each reward. `coef`: a
    dict.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = dict(fields)
        self._read: set[str] = set()

    def __len__(self) -> int:
        return len(self._fields["reward"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in GIVEN + NEEDS:
            near = did_you_mean(name, [*GIVEN, *NEEDS])
            raise AttributeError(
                f"a round has no '{name}'{near}: there are {', '.join(GIVEN + NEEDS)}"
            )
        if name not in self._fields and name != "token_reward":
            raise AttributeError(
                f"the round has no '{name}' as it was not read when the file was opened: list it, "
                f"NEEDS = ['{name}']"
            )
        self._read.add(name)
        return self._fields.get(name)


def read_round(content: Mapping[str, Any]) -> Round:
    """From JSON: numbers by name, [N] or [N][T]; of `parts` each reward's, null where it does not apply."""
    fields: dict[str, object] = {}
    for name, values in content.items():
        if name in ("stop", "coef"):
            fields[name] = values
        elif name in ("group", "length"):
            fields[name] = np.asarray(values, np.int64)
        elif name in ("reward", "bootstrap"):
            fields[name] = np.asarray(values, np.float64)
        elif name == "parts":
            fields[name] = [
                RewardPart(part["name"], part["weight"], np.asarray(part["paid"], np.float64))
                for part in values
            ]
        elif values is not None:
            fields[name] = [np.asarray(row, np.float64) for row in values]
    return Round(fields)


def assign(algorithm: Algorithm, round_: Round) -> Assigned:
    """Deterministic: the same round gives the same credit."""
    file = algorithm.file
    with untouched_randomness():
        found = algorithm.code.call("credit", round_, algorithm.config)
    returned: Mapping[Any, Any] = (
        cast("Mapping[Any, Any]", found) if isinstance(found, Mapping) else {}
    )
    if "advantage" not in returned:
        raise AlgorithmError(
            f"Cannot use what credit() of {file} returned: it is a {type(found).__name__}; {HOW}"
        )
    unknown = [str(name) for name in returned if name not in ASSIGNED]
    if unknown:
        near = did_you_mean(unknown[0], list(ASSIGNED))
        raise AlgorithmError(
            f"Cannot use '{unknown[0]}'{near} that credit() of {file} returned: {HOW}"
        )
    with telling_line(file, "read what credit() returned"):
        assigned: Assigned = {
            "advantage": _numbers(algorithm, "advantage", returned["advantage"], round_)
        }
        if returned.get("returns") is not None:
            assigned["returns"] = _numbers(algorithm, "returns", returned["returns"], round_)
        for name in ("coef", "metrics"):
            if returned.get(name):
                assigned[name] = {
                    str(key): _finite(algorithm, key, value)
                    for key, value in returned[name].items()
                }
    return assigned


def needs_of(algorithm: Algorithm) -> list[Need]:
    """
    What credit reads, found by trying it on a synthetic round with every input, which also checks
    its answer.
    """
    listed = algorithm.code.constant("NEEDS", [])
    for name in listed:
        if name not in NEEDS:
            raise AlgorithmError(
                f"Cannot use {algorithm.file} because it NEEDS "
                f"'{name}'{did_you_mean(name, list(NEEDS))}: "
                f"there are {', '.join(NEEDS)}"
            )
    tried = synthetic_round(algorithm)
    assign(algorithm, tried)
    return [name for name in NEEDS if name in tried._read or name in listed]


def synthetic_round(algorithm: Algorithm) -> Round:
    """
    Groups of unequal size, none below the file's GROUP_MIN; sequences of unequal length; rewards
    that differ.
    """
    least = max(2, group_min(algorithm))
    group = [0] * (least + 1) + [1] * least
    count = len(group)
    random = np.random.default_rng(3)
    length = [3 + place % 4 for place in range(count)]
    tokens = lambda low, high: [random.uniform(low, high, size) for size in length]  # noqa: E731
    fields = {
        "reward": random.uniform(0, 1, count),
        "group": np.asarray(group),
        "stop": ["length" if place % 3 == 2 else "stop" for place in range(count)],
        "length": np.asarray(length),
        "old_logp": tokens(-3, 0),
        "ref_logp": tokens(-3, 0),
        "values": tokens(-1, 1),
        "bootstrap": random.uniform(-1, 1, count),
        "parts": [
            RewardPart(name, weight, random.uniform(0, 1, count))
            for name, weight in (("first", 1.0), ("second", 0.5))
        ],
        "coef": algorithm.first_coef(),
    }
    return Round(fields)


def group_min(algorithm: Algorithm) -> int:
    """GROUP_MIN of the file: the smallest group that it can learn from."""
    least = algorithm.code.constant("GROUP_MIN", 1)
    if not isinstance(least, int) or least < 1:
        raise AlgorithmError(
            f"Cannot use {algorithm.file} because its GROUP_MIN is {least!r}: use a whole number "
            "from 1 on"
        )
    return least


def _numbers(algorithm: Algorithm, name: str, values: Any, round_: Round) -> list[Any]:
    """[N] floats, or [N] lists of T."""
    rows: Sequence[Any] = _plain(values)
    if not isinstance(rows, list) or len(rows) != len(round_):
        found = f"{len(rows)} of them" if isinstance(rows, list) else repr(values)
        raise AlgorithmError(
            f"Cannot use {name} of credit() of {algorithm.file} because there are {found}: the "
            f"round has {len(round_)} "
            f"sequences; {HOW}"
        )
    rows = [_plain(row) for row in rows]
    lengths = round_._fields["length"]
    for i, row in enumerate(rows):
        if isinstance(row, list) and len(row) != lengths[i]:
            raise AlgorithmError(
                f"Cannot use {name} of credit() of {algorithm.file} "
                f"because sequence {i} has {len(row)} numbers: it has "
                f"{lengths[i]} sampled tokens"
            )
    finite = lambda i, value: _finite(algorithm, f"{name} of sequence {i}", value)  # noqa: E731
    return [
        [finite(i, one) for one in row] if isinstance(row, list) else finite(i, row)
        for i, row in enumerate(rows)
    ]


def _plain(value: Any) -> Any:
    """Converts numpy and torch values to lists and numbers."""
    return (
        value.tolist()
        if hasattr(value, "tolist")
        else list(value)
        if isinstance(value, tuple)
        else value
    )


def _finite(algorithm: Algorithm, name: str, value: Any) -> float:
    number = float(_plain(value))
    if not np.isfinite(number):
        raise AlgorithmError(
            f"Cannot use {name} because credit() of {algorithm.file} assigned {number} to it"
        )
    return number
