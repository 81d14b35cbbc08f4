"""CPython in a sandbox. test_rewards_graders_code_battery.py has hostile programs."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from holdfast_worker.linux import PR_SET_CHILD_SUBREAPER, prctl
from holdfast_worker.process_table import process_state
from holdfast_worker.rewards.sandbox import process_sandbox, walls
from holdfast_worker.rewards.sandbox.process_sandbox import ProcessSandbox
from holdfast_worker.rewards.sandbox.started import CannotStart, Ended
from holdfast_worker.rewards.sandbox.walls import Bounds

BOUNDS = Bounds(cpu_s=20, memory_mib=512, file_mib=16, processes_max=None)


def soon() -> float:
    return time.monotonic() + 30


def test_a_script_runs_anew_for_each_input() -> None:
    scripts = ProcessSandbox(BOUNDS, walls=True, output_bytes_max=1000).scripts(
        "import os\nprint(input(), os.listdir())\nopen('left', 'w').close()"
    )
    assert [scripts.run(text, soon()) for text in ("a", "b\n")] == ["a []\n", "b []\n"]


def test_an_interpreter_holds_a_program() -> None:
    sandbox = ProcessSandbox(BOUNDS, walls=True, output_bytes_max=1000)
    program = sandbox.interpreter("program")
    program.send({"ask": {"op": "load", "source": "x = 2"}}, soon())
    assert program.receive(soon()) == {"answer": {"names": {"x": 2}}}
    program.close()


def test_without_walls_the_directory_is_removed_and_daemons_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # As reward processes are: daemons come to be below it.
    # The superuser becomes nobody, who may not reach the tests' interpreter.
    monkeypatch.setattr(walls, "_become_nobody", lambda: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sandbox = ProcessSandbox(BOUNDS, walls=False, output_bytes_max=1000)
    daemon = (
        "import os, time\n"
        "open('left', 'w').close()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.setsid()\n"
        "    time.sleep(1000)\n"
        "print(child, os.getcwd())"
    )
    pid, cwd = sandbox.scripts(daemon).run("", soon()).split()
    place = Path(cwd)
    assert process_state(int(pid)) == "gone"
    assert (place.name, place.parent.parent) == ("work", tmp_path)
    assert os.listdir(tmp_path) == []
    with pytest.raises(Ended) as ended:
        sandbox.scripts("x = bytearray(1 << 40)").run("", soon())
    assert ended.value.outcome == "memory"


def test_a_machine_without_namespaces_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: int) -> None:
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr(walls, "unshare", refused)
    with pytest.raises(CannotStart, match="Operation not permitted"):
        ProcessSandbox(BOUNDS, walls=True, output_bytes_max=1000)
    assert process_sandbox.PYTHON[0]
