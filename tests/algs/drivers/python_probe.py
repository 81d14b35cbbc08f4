"""
A loss in Python as the property suite asks for it: values with every `detach` frozen, and the
corners on the way.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from holdfast_worker.algorithm import Algorithm, PythonProgram, recorded_program
from holdfast_worker.algorithm.credit import assign, group_min, read_round
from holdfast_worker.algorithm.inputs import Inputs

TORCH = str(Path(torch.__file__).parent)
# Operations whose value is what the gradient ends at.
STOPS = {"detach", "item", "tolist"}
SWAPPED = {"gt": "lt", "ge": "le"}
SIDED = {"clamp", "minimum", "maximum", "lt", "le", "where"}


class Watch(TorchFunctionMode):
    """
    Around one call of a user's function. Keeps, in the order of calls, what gradients stop at and
    the operations with sides; or, given `frozen`, answers what was kept then. `sides`: an operation
    by name stays on its sides.
    """

    def __init__(
        self,
        part: str,
        x: Inputs,
        file: str,
        frozen: list[Any] | None = None,
        sides: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.part = part
        self.x = x
        self.file = file
        self.frozen = frozen
        self.sides = sides or {}
        self.stopped: list[Any] = []
        self.corners: list[dict[str, Any]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self._called_by_user():
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "").strip("_")
        if name in STOPS or not torch.is_grad_enabled():
            return self._stop(func(*args, **kwargs))
        result = func(*args, **kwargs)
        if name in SWAPPED:
            name, args = SWAPPED[name], args[::-1]
        return self._corner(name, result, args, kwargs) if name in SIDED else result

    def _called_by_user(self) -> bool:
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(TORCH):
            frame = frame.f_back
        return frame.f_code.co_filename == self.file

    def _stop(self, value: Any) -> Any:
        self.stopped.append(value)
        return value if self.frozen is None else self.frozen[len(self.stopped) - 1]

    def _corner(self, name: str, result: Any, args: Any, kwargs: Any) -> Any:
        mask = self._mask(result)
        if mask is None:
            return result
        operands, bounds = _operands(name, args, kwargs, result)
        title = f"{self.part} {len(self.corners)} {name}"
        self.corners.append({"name": title, **_corner(name, operands, bounds, mask)})
        if title not in self.sides:
            return result
        sides = torch.zeros(result.shape).masked_scatter(
            mask, torch.tensor(self.sides[title], dtype=torch.float32)
        )
        return _held(name, operands, bounds, sides, result)

    def _mask(self, value: Any) -> Tensor | None:
        shapes = {mask.shape: mask for mask in self.x._masks.values()}
        return shapes.get(value.shape) if isinstance(value, Tensor) else None


def _operands(
    name: str, args: Any, kwargs: Any, result: Tensor
) -> tuple[list[Tensor], list[float | None]]:
    def spread(value: Any) -> Tensor:
        return torch.as_tensor(value, dtype=torch.float64).expand(result.shape)

    if name == "clamp":
        low = kwargs.get("min", args[1] if len(args) > 1 else None)
        high = kwargs.get("max", args[2] if len(args) > 2 else None)
        return [spread(args[0])], [low, high]
    return [spread(value) for value in args[: 1 if name == "where" else 2]], []


def _corner(
    name: str, operands: list[Tensor], bounds: list[float | None], mask: Tensor
) -> dict[str, Any]:
    values = [operand[mask] for operand in operands]
    if name == "where":
        sides = torch.where(values[0] != 0, 1, -1)
        return {"branches": [-1, 1], "sides": sides.tolist(), "distances": []}
    if name == "clamp":
        low, high = (
            (-math.inf if bounds[0] is None else bounds[0]),
            (math.inf if bounds[1] is None else bounds[1]),
        )
        sides = (values[0] > high).int() - (values[0] < low).int()
        branches = [
            side for side, bound in ((-1, bounds[0]), (0, 0.0), (1, bounds[1])) if bound is not None
        ]
        distances = [(values[0] - bound).tolist() for bound in bounds if bound is not None]
        return {"branches": branches, "sides": sides.tolist(), "distances": distances}
    distance = values[0] - values[1]
    return {
        "branches": [-1, 1],
        "sides": torch.sign(distance).tolist(),
        "distances": [distance.tolist()],
    }


def _held(
    name: str, operands: list[Tensor], bounds: list[float | None], sides: Tensor, result: Tensor
) -> Tensor:
    """The operation as it is on its side, where it is smooth."""
    if name == "clamp":
        low, high = (
            torch.as_tensor(0.0 if bound is None else bound, dtype=torch.float64)
            for bound in bounds
        )
        return torch.where(sides < 0, low, torch.where(sides > 0, high, operands[0]))
    if name in ("minimum", "maximum"):
        first, second = operands if name == "minimum" else operands[::-1]
        return torch.where(sides < 0, first, torch.where(sides > 0, second, (first + second) / 2))
    return result if name == "where" else (sides < 0) if name == "lt" else (sides <= 0)


class Watches:
    """A program whose every call of the user's functions is watched."""

    def __init__(
        self,
        program: PythonProgram,
        frozen: Watches | None = None,
        sides: dict[str, Any] | None = None,
    ):
        self.program = program
        self.frozen = frozen
        self.sides = sides
        self.calls: list[Watch] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        program = self.program
        program.call_loss = lambda x, s: self._call(  # type: ignore[method-assign]
            program.part, PythonProgram.call_loss, x, s
        )
        program.call_statistics = lambda x: self._call(
            "statistics", PythonProgram.call_statistics, x
        )  # type: ignore[method-assign]
        try:
            yield
        finally:
            del program.call_loss, program.call_statistics

    def _call(self, part: str, function: Any, x: Inputs, *rest: Any) -> Any:
        before = None if self.frozen is None else self.frozen.calls[len(self.calls)].stopped
        watch = Watch(part, x, self.program.file, before, self.sides)
        self.calls.append(watch)
        with watch:
            return function(self.program, x, *rest)

    def corners(self) -> list[dict[str, Any]]:
        return [corner for watch in self.calls for corner in watch.corners]


programs: dict[tuple[str, bool], PythonProgram] = {}


def opened(recorded: dict[str, Any], old_is_current: bool = False) -> PythonProgram:
    key = (repr(recorded), old_is_current)
    if key not in programs:
        programs[key] = recorded_program(recorded, old_is_current)
    return programs[key]


def evaluate(
    case: Any, watches: Watches, sums: dict[str, float] | None = None
) -> tuple[Any, dict[str, float]]:
    """
    The whole step at once, in float64, without a gradient, and its statistics; `sums` are frozen
    ones.
    """
    rows = list(range(len(case.sequences)))
    mb = case.micro_batch(rows)
    leaves = {name: [case.leaf(name, row).detach() for row in rows] for name in case.program.live}
    live = {name: case.live_rows(name, mb, leaves[name]) for name in case.program.live}
    work = case.program.open_step([mb], case.counts, case.coef, lambda value: [value])
    with watches.watching():
        work.resolve(lambda mb, need: live, None)
        if sums is not None:
            work.sums = sums
        work.share(mb, live)
    return work.report([live]), work.sums


def probe(
    argument: dict[str, Any], make_case: Callable[[dict[str, Any]], Any]
) -> list[dict[str, Any]]:
    """`LossUnderTest.probe` of tests/algs/properties/asked_of.ts."""
    recorded, held = argument["recorded"], argument.get("held")
    frozen, sums = None, None
    if held is not None:
        case = make_case({"expression": recorded, "step": held["detached"]})
        frozen = Watches(case.program)
        _, sums = evaluate(case, frozen)
    answers = []
    for step in argument["steps"]:
        case = make_case({"expression": recorded, "step": step})
        watches = Watches(case.program, frozen, (held or {}).get("sides"))
        outcome, _ = evaluate(case, watches, sums)
        answers.append(
            {"loss": outcome.loss, "metrics": outcome.metrics, "corners": watches.corners()}
        )
    return answers


def describe_file(argument: dict[str, Any]) -> dict[str, Any]:
    """
    What the suite must know before it registers tests: settings with defaults, and of each loss
    what it reads.
    """
    algorithm = Algorithm(argument)
    parts = [part for part in ("loss", "value_loss") if algorithm.code.has(part)]
    losses = {part: PythonProgram(algorithm, part) for part in parts}
    return {
        "settings": algorithm.settings,
        "group_min": group_min(algorithm),
        "examples": algorithm.code.constant("EXAMPLES", []),
        "credit": algorithm.code.has("credit"),
        "losses": {
            part: {"reads": sorted(one.read), "pairs": one.has_pairs}
            for part, one in losses.items()
        },
    }


def credit(argument: dict[str, Any]) -> dict[str, Any]:
    return assign(Algorithm(argument["python"]), read_round(argument["round"]))
