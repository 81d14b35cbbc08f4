"""What a program finds between its walls; test_rewards_graders_code_battery.py has attacks."""

from __future__ import annotations

import json
import sys
import time

from holdfast_worker.rewards.sandbox.started import Started
from holdfast_worker.rewards.sandbox.walls import PROGRAM, Bounds, clean_environment, walled

LOOK = """
import json, os, resource, socket, sys
limits = [resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1]
          for name in ("CPU", "AS", "FSIZE", "NPROC", "CORE")]
writable = [place for place in ("/", "/usr", "/work", "/tmp", sys.prefix)
            if os.access(place, os.W_OK)]
print(json.dumps([os.getcwd(), os.listdir(), socket.gethostname(), limits, writable,
    dict(os.environ).keys() >= {"PYTHONHASHSEED"}, os.path.exists("/proc"),
    len(socket.if_nameindex()), os.getpid()]))
"""


def test_walled_leaves_an_interpreter_and_an_empty_directory() -> None:
    bounds = Bounds(cpu_s=7, memory_mib=300, file_mib=9, processes_max=5)
    process = Started(
        [sys.executable, "-s", "-P", "-B", PROGRAM],
        env=clean_environment({}),
        prepare=lambda: walled(LOOK, bounds),
    )
    found = json.loads(process.output(time.monotonic() + 30, 10_000))
    process.end()
    mib = 1 << 20
    limits = [7, 300 * mib, 9 * mib, 6, 0]
    assert found == ["/work", [], "sandbox", limits, ["/work", "/tmp"], True, False, 1, 2]


def test_clean_environment_has_nothing_of_ours() -> None:
    assert clean_environment({"A": "b"})["A"] == "b"
    assert "HOME" not in clean_environment({})
