"""A process with pipes: bounded reading, named ends, nothing left."""

from __future__ import annotations

import sys
import time

import pytest

from holdfast_worker.process_table import process_state
from holdfast_worker.rewards.sandbox.cpu_time import CpuTime
from holdfast_worker.rewards.sandbox.started import CannotStart, Ended, OutOfTime, Started


def started(code: str) -> Started:
    return Started([sys.executable, "-S", "-c", code], env={}, prepare=lambda: None)


def soon() -> float:
    return time.monotonic() + 30


@pytest.mark.parametrize(
    ("code", "outcome", "detail"),
    [
        ("raise SystemExit(3)", "error", "exit code 3"),
        ("1 / 0", "error", "ZeroDivisionError: division by zero"),
        ("raise MemoryError", "memory", "memory_mib"),
        ("import os; os.kill(os.getpid(), 11)", "crash", "killed by SIGSEGV"),
        ("import os; os.kill(os.getpid(), 24)", "timeout", "CPU time"),
        ("print('x' * 100000)", "output", "more than 1000 bytes"),
        ("import sys; sys.stderr.write('crash: of its own'); sys.exit(1)", "crash", "of its own"),
    ],
)
def test_output_says_how_a_program_ended(code: str, outcome: str, detail: str) -> None:
    process = started(code)
    with pytest.raises(Ended, match=detail) as ended:
        process.output(soon(), 1000)
    assert ended.value.outcome == outcome
    process.end()
    assert process_state(process.pid) == "gone"


def test_output_is_all_that_was_printed_though_errors_fill_their_pipe() -> None:
    code = "import sys; sys.stderr.write('x' * 1_000_000); sys.stdout.write('y' * 200_000)"
    process = started(code)
    assert process.output(soon(), 1 << 20) == b"y" * 200_000
    process.end()


def test_a_process_that_does_not_end_is_ended_with_its_children() -> None:
    process = started(
        "import os, time\npid = os.fork()\nif pid: os.write(1, b'%8d' % pid)\ntime.sleep(1000)"
    )
    child = int(process.receive(8, soon()))
    with pytest.raises(OutOfTime, match="by the clock"):
        process.output(time.monotonic(), 1000)
    process.end()
    assert process_state(process.pid) == "gone"
    assert process_state(child) in ("gone", "dead")


def test_send_ends_when_nobody_reads() -> None:
    process = started("")
    with pytest.raises(Ended, match="ended early"):
        process.send(bytes(1 << 20), soon())
    process.end()


def test_what_fails_before_the_program_is_told() -> None:
    def fails() -> None:
        raise PermissionError("not here")

    with pytest.raises(CannotStart, match="PermissionError: not here"):
        Started([sys.executable], env={}, prepare=fails)
    with pytest.raises(CannotStart, match="FileNotFoundError"):
        Started(["/no/such/program"], env={}, prepare=lambda: None)


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import os\nos.fork() or os.execv('/bin/sh', ['sh', '-c', 'while :; do :; done'])\nos.wait()",
    ],
)
def test_a_program_and_its_children_have_so_much_cpu_time(code: str) -> None:
    cpu = CpuTime()
    process = Started([sys.executable, "-S", "-c", code], env={}, prepare=lambda: None, cpu=cpu)
    cpu.allow(0.3)
    with pytest.raises(Ended, match="used its CPU time") as ended:
        process.output(soon(), 1000)
    assert ended.value.outcome == "timeout"
    process.end()
    assert cpu.used_s() >= 0.3
