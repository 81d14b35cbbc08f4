"""The reward `code`: the share of a row's cases that the program in a completion gets right."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict, get_args

from holdfast_worker.rewards.graders.code_cases import cases_of
from holdfast_worker.rewards.graders.code_program import program_of
from holdfast_worker.rewards.graders.code_runs import Times, outcomes_of, run_of
from holdfast_worker.rewards.sandbox.interpreter import Sandbox
from holdfast_worker.rewards.sandbox.process_sandbox import ProcessSandbox
from holdfast_worker.rewards.sandbox.pyodide_sandbox import PyodideSandbox, Runtime
from holdfast_worker.rewards.sandbox.started import CannotStart, Outcome
from holdfast_worker.rewards.sandbox.walls import Bounds

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
KIB = 1 << 10


class CodeSettings(TypedDict):
    """As rewards/code.ts sends them."""

    sandbox: str
    without_namespaces: str
    credit: str
    tests: str | None
    case_timeout_ms: float
    timeout_ms: float
    memory_mib: int
    file_mib: int
    output_kib: int
    processes_max: int
    slowed: float
    runtime: dict[str, str]


Grade = Callable[[str, Mapping[str, Any]], dict[str, float]]


def grader(settings: CodeSettings) -> Grade:
    """Raises CannotStart, with one sentence, if this machine has no such sandbox."""
    sandbox = _sandbox(settings)
    times = Times(
        case_s=settings["case_timeout_ms"] / 1000,
        total_s=settings["timeout_ms"] / 1000,
        slowed=settings["slowed"],
    )

    def grade(completion: str, row: Mapping[str, Any]) -> dict[str, float]:
        """`score`, and the share of the cases that ended in each way. Raises ValueError if the row
        has no cases, OutOfTime if it is not known how they end.
        """
        cases = cases_of(row, settings["tests"])
        program = program_of(completion)
        if program is None:
            return _score([], is_all=False)
        outcomes = outcomes_of(
            run_of(sandbox, program, cases),
            times,
            all_or_nothing=settings["credit"] == "all",
        )
        return _score(outcomes, is_all=settings["credit"] == "all")

    return grade


def _score(outcomes: list[Outcome], *, is_all: bool) -> dict[str, float]:
    """Without outcomes: there was no program."""
    count = max(len(outcomes), 1)
    shares = {name: outcomes.count(name) / count for name in OUTCOMES if name != "right"}
    right = outcomes.count("right") / count
    score = float(right == 1.0) if is_all else right
    return {"score": score, **shares, "no_program": float(not outcomes)}


def user_cache() -> Path:
    """The user's, or else one of this process."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "holdfast")
    try:
        usual.mkdir(mode=0o700, parents=True, exist_ok=True)
        return usual if os.access(usual, os.W_OK) else Path(tempfile.mkdtemp())
    except OSError:
        return Path(tempfile.mkdtemp())


def _sandbox(settings: CodeSettings) -> Sandbox:
    output_bytes_max = settings["output_kib"] * KIB
    if settings["sandbox"] == "pyodide":
        try:
            return PyodideSandbox(
                Runtime(**settings["runtime"], cache=str(user_cache())),
                memory_mib=settings["memory_mib"],
                output_bytes_max=output_bytes_max,
            )
        except CannotStart as why:
            raise CannotStart(
                f"Cannot use the reward code in the sandbox pyodide because {why}. Fix: install it "
                "there, or use `sandbox: process`"
            ) from None
    total_s = int(settings["timeout_ms"] // 1000) + 1
    bounds = Bounds(
        cpu_s=total_s,
        memory_mib=settings["memory_mib"],
        file_mib=settings["file_mib"],
        processes_max=settings["processes_max"],
    )
    walls = True
    try:
        return ProcessSandbox(bounds, walls=walls, output_bytes_max=output_bytes_max)
    except CannotStart as why:
        if settings["without_namespaces"] == "refuse":
            raise CannotStart(
                "Cannot use the reward code in the sandbox process because this machine does not "
                f"let it have namespaces: {why}. Fix: use `sandbox: pyodide`, or allow user "
                "namespaces; `without_namespaces: accept` runs programs with limits alone, so that "
                "they can read files and use the network"
            ) from None
    return ProcessSandbox(bounds, walls=False, output_bytes_max=output_bytes_max)
