"""Reward functions of a user, in a file, and pools that call them."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_engine import PACKAGES
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.reward_code import RewardCode
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import RewardProcess

SOURCE = '''
import asyncio, itertools, os, signal, subprocess, sys, time
from dataclasses import dataclass
from pathlib import Path
from helper_beside import LENGTH

@dataclass
class Parsed:
    text: str

def length(*, prompt, completion, row, tokens=None, **kw):
    print("noise " * 1000)
    os.write(1, b"\\x00" * 100)
    return len(Parsed(completion).text) / LENGTH

async def slow_length(*, completion):
    await asyncio.sleep(0.001)
    return {"score": len(completion), "words": 2, "metrics": {"deep": 0.5}}

def alarmed(*, completion, **kw):
    def ring(*_):
        raise TimeoutError("rang")
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        time.sleep(5)
    except TimeoutError:
        return 0.25

CALLS = itertools.count()

def leaves_alarm(*, completion, **kw):
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.15)
    return next(CALLS)

def by_text(*, completion, row, **kw):
    """Does what the completion says."""
    if completion == "hang":
        subprocess.Popen(["sleep", row["sleep"]])
        Path(row["here"]).touch()
        while True:
            pass
    if completion == "exit":
        os._exit(5)
    if completion == "throw":
        raise KeyError("answer")
    if completion == "quit":
        sys.exit(1)
    if completion == "nan":
        return float("nan")
    if completion == "text":
        return "1"
    return 1.0

def throws_once(*, row, **kw):
    marker = Path(row["marker"])
    if not marker.exists():
        marker.touch()
        raise RuntimeError("the first time")
    return 0.75

def ungraded(*, completion, row):
    with open(row["calls"], "a") as calls:
        print(completion, file=calls)
    return {"none": None, "dict": {"score": None, "right": None}, "right": {"score": 0.9, "right": False}}[completion]

def endless(**kw):
    while True:
        pass

def variables(**kw):
    return {"score": 1, **{name: 1 for name in os.environ}}

def burn(completion):
    from time import process_time
    began = process_time()
    while process_time() - began < float(completion):
        pass
    return 1

def limits(**kw):
    import resource
    kinds = {"data": resource.RLIMIT_DATA, "file": resource.RLIMIT_FSIZE, "cpu": resource.RLIMIT_CPU}
    return {"score": 1, **{name: resource.getrlimit(kind)[0] for name, kind in kinds.items()},
            "core": resource.getrlimit(resource.RLIMIT_CORE)[0]}



def of_columns(completion, answer, unit="none", *, columns=3):
    return {"score": float(completion == answer), "columns": columns, "has_unit": unit != "none"}
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "helper_beside.py").write_text("LENGTH = 10\n")
    path = tmp_path / "my_rewards.py"
    path.write_text(SOURCE)
    return path


PROCESS: dict[str, Any] = {
    **{
        "env": [],
        "memory_gib": 4,
        "cpu_s": 30,
        "file_mib": 64,
        "processes_max": 16,
        "isolate": True,
    },
}
MakePool = Callable[..., RewardPool]


@pytest.fixture
def pool_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePool]:
    """A pool for a function; all are closed at the end."""
    monkeypatch.setenv("PYTHONPATH", str(PACKAGES))
    pools: list[RewardPool] = []

    def make(
        function: str, *, processes: int = 2, style: str | None = None, **process: Any
    ) -> RewardPool:
        pools.append(
            RewardPool(
                RewardCode.of(function, decode(RewardProcess, {**PROCESS, **process}), style=style),
                processes,
            )
        )
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def items(*completions: str, **row: Any) -> list[dict[str, Any]]:
    """Samples of one prompt; `answer` in `row` is also the row's reference answer."""
    answer = {"answer": row["answer"]} if "answer" in row else {}
    return [
        {"id": str(i), "prompt": "p", "completion": text, "columns": row, **answer}
        for i, text in enumerate(completions)
    ]


def carriers(argument: str) -> list[str]:
    """
    Processes that were started with this argument, as their command lines. Process ids say nothing:
    a reward has its own.
    """
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if argument in command:
            found.append(" ".join(command))
    return found


def until_carried(argument: str, within_s: float = 5.0) -> None:
    """
    Until a process with this argument is seen. On a busy machine, one read of /proc has missed a
    process that a call had just found alive.
    """
    deadline = time.monotonic() + within_s
    while not carriers(argument):
        if time.monotonic() > deadline:
            table = subprocess.run(["ps", "axf"], capture_output=True, text=True, check=True).stdout
            raise AssertionError(f"No process has the argument {argument}:\n{table}")
        time.sleep(0.01)


def outcomes(results: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
    return [(result["id"], result["outcome"], result["score"]) for result in results]
