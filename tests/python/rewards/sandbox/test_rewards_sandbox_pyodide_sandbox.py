"""Python in WebAssembly. Its memory is made once for all tests, in the user's cache."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from code_settings import runtime
from holdfast_worker.rewards.sandbox.cpu_time import CpuTime
from holdfast_worker.rewards.sandbox.pyodide_sandbox import PyodideSandbox, snapshot_of
from holdfast_worker.rewards.sandbox.started import CannotStart, Ended


def test_a_script_and_an_interpreter_start_from_one_memory() -> None:
    sandbox = PyodideSandbox(runtime(), memory_mib=256, output_bytes_max=1000)
    scripts = sandbox.scripts("import sys\nx = globals().get('x', 0) + 1\nprint(input(), x)")
    scripts.ready()
    assert scripts.run("a", time.monotonic() + 60) == "a 1\n"
    assert scripts.run("b", time.monotonic() + 60) == "b 1\n"
    scripts.close()
    cpu = CpuTime()
    quick = sandbox.scripts("print(1)", cpu)
    quick.ready()
    cpu.allow(0.3)  # Starting takes more.
    assert quick.run("", time.monotonic() + 60) == "1\n"
    quick.close()
    loud = sandbox.scripts("print('x' * 2000)")
    loud.ready()
    with pytest.raises(Ended) as ended:
        loud.run("", time.monotonic() + 60)
    assert ended.value.outcome == "output"
    loud.close()


@pytest.mark.parametrize("part", ["deno", "host", "pyodide"])
def test_what_is_missing_is_named(part: str, tmp_path: Path) -> None:
    missing = replace(runtime(), cache=str(tmp_path), **{part: str(tmp_path / "none")})
    with pytest.raises(CannotStart, match="there is no .* at .*none"):
        snapshot_of(missing)
