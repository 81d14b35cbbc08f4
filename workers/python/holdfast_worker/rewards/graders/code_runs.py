"""Runs a program on its cases, one after the other, and says of each how it went."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast_worker.rewards.graders.code_cases import Calls, Cases, Scripts, Tests
from holdfast_worker.rewards.graders.code_compare import same_output, same_value
from holdfast_worker.rewards.sandbox.cpu_time import CpuTime
from holdfast_worker.rewards.sandbox.interpreter import Interpreter, Sandbox
from holdfast_worker.rewards.sandbox.started import Ended, Outcome
from holdfast_worker.rewards.sandbox.values import BadMessage, decode, encode, is_dict, is_list

Clock = Callable[[], float]

GRACE_S = 2.0  # A process starts in a case's time.

# Programs for LeetCode expect these names.
PRELUDE = """\
import bisect, collections, copy, datetime, functools, heapq, itertools, math, operator, random
import re, statistics, string, sys
from bisect import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from typing import *
"""


class Run(Protocol):
    """One program and its cases. `case` raises Ended. `ready` starts what a case broke again: it
    is not in any case's time, and raises CannotStart.
    """

    @property
    def count(self) -> int: ...

    @property
    def cpu(self) -> CpuTime: ...

    def ready(self) -> None: ...

    def case(self, number: int, deadline: float) -> Outcome: ...

    def close(self) -> None: ...


def run_of(sandbox: Sandbox, program: str, cases: Cases) -> Run:
    match cases:
        case Scripts():
            return _ScriptRun(sandbox, program, cases)
        case Calls():
            return _CallRun(sandbox, program, cases)
        case Tests():
            return _TestRun(sandbox, program, cases)


@dataclass(frozen=True)
class Times:
    """CPU time of one case, and of all together: a case that needs more is not right. By the clock,
    each may take `slowed` times as long, because of what else the machine does, and GRACE_S.
    """

    case_s: float
    total_s: float
    slowed: float


def outcomes_of(
    run: Run, times: Times, *, all_or_nothing: bool, clock: Clock = time.monotonic
) -> list[Outcome]:
    """How each case went. With `all_or_nothing`, those after the first that is not right are as that
    one. Raises OutOfTime.
    """
    outcomes: list[Outcome] = []
    remaining_s = times.total_s
    by_clock_s = times.slowed * times.total_s + GRACE_S
    try:
        for number in range(run.count):
            if remaining_s <= 0:
                outcomes.append("timeout")
                continue
            run.cpu.allow(math.inf)
            run.ready()
            started, before = clock(), run.cpu.used_s()
            may_s = min(times.case_s, remaining_s)
            run.cpu.allow(may_s)
            deadline = started + min(times.slowed * may_s + GRACE_S, by_clock_s)
            outcome = _outcome(run, number, deadline)
            remaining_s -= run.cpu.used_s() - before
            by_clock_s -= clock() - started
            outcomes.append(outcome)
            if all_or_nothing and outcome != "right":
                return [*outcomes, *(outcome for _ in range(run.count - len(outcomes)))]
    finally:
        run.close()
    return outcomes


def _outcome(run: Run, number: int, deadline: float) -> Outcome:
    try:
        return run.case(number, deadline)
    except Ended as ended:
        return ended.outcome


class _ScriptRun:
    def __init__(self, sandbox: Sandbox, program: str, cases: Scripts) -> None:
        self._cases = cases.cases
        self.count = len(cases.cases)
        self.cpu = CpuTime()
        self._scripts = sandbox.scripts(program, self.cpu)

    def ready(self) -> None:
        self._scripts.ready()

    def case(self, number: int, deadline: float) -> Outcome:
        argument, wanted = self._cases[number]
        printed = self._scripts.run(argument, deadline)
        return "right" if same_output(printed, wanted) else "wrong"

    def close(self) -> None:
        self._scripts.close()


class _Program:
    """The program in an interpreter, for one that calls its functions."""

    def __init__(self, sandbox: Sandbox, source: str, cpu: CpuTime) -> None:
        self._cpu = cpu
        self._sandbox = sandbox
        self._source = source
        self._interpreter: Interpreter | None = None
        self._names: Any = None
        self._never: Ended | None = None

    def ready(self) -> None:
        if self._interpreter is None:
            self._interpreter = self._sandbox.interpreter("program", self._cpu)
            self._names = None

    def names(self, deadline: float) -> dict[str, Any]:
        """What it defines, once it has run. If that failed, it fails for each case."""
        if self._never is not None:
            raise self._never
        if self._names is None:
            try:
                reply = self.ask({"op": "load", "source": self._source}, deadline)
            except Ended as ended:
                self._never = ended
                raise
            self._names = reply.get("names")
        names = self._names
        if not is_dict(names):
            raise Ended("crash", "it wrote what is no message")
        return names

    def ask(self, message: Any, deadline: float) -> dict[str, Any]:
        """Its answer. An error that it raised is Ended, but leaves it as it is."""
        answer = self.relay({"ask": message}, deadline).get("answer")
        if not is_dict(answer):
            raise Ended("crash", "it wrote what is no message")
        if "error" in answer:
            error = answer["error"]
            classes = error.get("classes") if is_dict(error) else None
            is_memory = is_list(classes) and "MemoryError" in classes
            raise Ended("memory" if is_memory else "error", str(error)[:300])
        return answer

    def relay(self, frame: Any, deadline: float) -> dict[str, Any]:
        """What it says next, whatever that is. If it says nothing, it is ended."""
        assert self._interpreter is not None
        try:
            self._interpreter.send(frame, deadline)
            return self._interpreter.receive(deadline)
        except Ended:
            self.close()
            raise

    def close(self) -> None:
        if self._interpreter is not None:
            self._interpreter.close()
            self._interpreter = None


class _CallRun:
    def __init__(self, sandbox: Sandbox, program: str, cases: Calls) -> None:
        self._cases = cases
        self.count = len(cases.cases)
        self.cpu = CpuTime()
        self._program = _Program(sandbox, f"{PRELUDE}{program}", self.cpu)

    def ready(self) -> None:
        self._program.ready()

    def case(self, number: int, deadline: float) -> Outcome:
        args, accepted = self._cases.cases[number]
        function = self._function(deadline)
        value = self._call(function, args, deadline)
        try:
            returned = decode(value, _no_object)
        except BadMessage:
            return "wrong"
        return "right" if any(same_value(returned, one) for one in accepted) else "wrong"

    def close(self) -> None:
        self._program.close()

    def _function(self, deadline: float) -> Any:
        """A function of the program, or a method of its class `Solution`."""
        names = self._program.names(deadline)
        name = self._cases.function
        if name in names:
            return names[name]
        if "Solution" not in names:
            raise Ended("error", f"the program has no {name}")
        instance = self._call(names["Solution"], [], deadline)
        reply = self._program.ask({"op": "getattr", "args": [instance, name]}, deadline)
        return reply.get("value")

    def _call(self, function: Any, args: list[Any], deadline: float) -> Any:
        arguments = [encode(one, _no_reference) for one in args]
        message: Any = {"op": "call", "of": function, "args": arguments, "named": {}}
        return self._program.ask(message, deadline).get("value")


class _TestRun:
    """The tests run in a separate interpreter: the program answers only what they ask."""

    def __init__(self, sandbox: Sandbox, program: str, cases: Tests) -> None:
        self._sandbox = sandbox
        self._cases = cases
        self.cpu = CpuTime()
        self._program = _Program(sandbox, program, self.cpu)
        self._tests: Interpreter | None = None
        self._knows = False
        self.count = 1
        self.ready()

    def ready(self) -> None:
        self._program.ready()
        if self._tests is not None:
            return
        self._tests = self._sandbox.interpreter("tests", self.cpu)
        self._knows = False
        setup, texts, entry = self._cases.setup, self._cases.texts, self._cases.entry
        message: Any = {"op": "load", "setup": setup, "tests": texts, "entry": entry}
        reply = self._verdict(message, time.monotonic() + LOAD_S)
        self.count = int(reply["cases"])

    def case(self, number: int, deadline: float) -> Outcome:
        names = self._program.names(deadline)
        if not self._knows:
            self._verdict({"op": "names", "names": names, "entry": self._cases.entry}, deadline)
            self._knows = True
        return (
            "right" if self._verdict({"op": "run", "case": number}, deadline)["right"] else "wrong"
        )

    def close(self) -> None:
        self._program.close()
        self._end_tests()

    def _verdict(self, message: Any, deadline: float) -> dict[str, Any]:
        """What the tests say. Meanwhile what they ask goes to the program, and its answers back."""
        assert self._tests is not None
        try:
            self._tests.send(message, deadline)
            while "verdict" not in (reply := self._tests.receive(deadline)):
                self._tests.send(self._program.relay(reply, deadline), deadline)
        except Ended:
            self.close()  # One of them waits for what does not come.
            raise
        verdict = reply["verdict"]
        if "broken" in verdict:
            self.close()
            raise ValueError(
                f"Cannot score with code because the row's tests do not run: {verdict['broken']}"
            )
        return verdict

    def _end_tests(self) -> None:
        if self._tests is not None:
            self._tests.close()
            self._tests = None


LOAD_S = 60.0


def _no_object(kind: str, _number: Any) -> Any:
    raise BadMessage(f"no {kind}")


def _no_reference(value: Any) -> Any:
    raise ValueError(f"Cannot score with code because an argument is a {type(value).__name__}")
