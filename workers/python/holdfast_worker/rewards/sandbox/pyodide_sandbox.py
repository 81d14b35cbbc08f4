"""The sandbox `pyodide`: Python in WebAssembly, in a Deno process without permissions.

Starting Python there takes seconds, so its memory is kept in a file and each program gets a fresh
process that continues from it. What one program did is gone with its process.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast_worker.rewards.sandbox.cpu_time import CpuTime
from holdfast_worker.rewards.sandbox.interpreter import Interpreter, Scripts, Side, frame, modules
from holdfast_worker.rewards.sandbox.started import (
    CannotStart,
    Ended,
    Outcome,
    OutOfTime,
    Started,
)
from holdfast_worker.rewards.sandbox.walls import Bounds, limit

START_S = 120.0
# What Deno and the interpreter take before a program runs.
OWN_MIB = 1536
PAGES_PER_MIB = 16
# Nothing that Deno keeps (localStorage, caches) has a place: this cannot exist.
NO_DIRECTORY = "/dev/null/deno"
FLAGS = ("--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-npm", "--no-remote")


@dataclass(frozen=True)
class Runtime:
    """Where things are on this machine. `host`: rewards/pyodide_host.ts; `pyodide`: the directory
    of the npm package; `cache`: where its memory is kept.
    """

    deno: str
    host: str
    pyodide: str
    cache: str


class PyodideSandbox:
    """Raises CannotStart."""

    def __init__(self, runtime: Runtime, *, memory_mib: int, output_bytes_max: int) -> None:
        self._runtime = runtime
        self._output_bytes_max = output_bytes_max
        self._memory_mib = memory_mib
        self._bounds = Bounds(
            cpu_s=None,
            memory_mib=memory_mib + OWN_MIB,
            file_mib=0,
            processes_max=None,
            counts_written=True,
        )
        self._snapshot = snapshot_of(runtime)

    def scripts(self, program: str, cpu: CpuTime | None = None) -> Scripts:
        return _Scripts(self, program, self._output_bytes_max, cpu)

    def interpreter(
        self, side: Literal["program", "tests"], cpu: CpuTime | None = None
    ) -> Interpreter:
        return self.started(side, cpu)

    def started(self, side: Side, cpu: CpuTime | None) -> Interpreter:
        command = _command(
            self._runtime,
            ["run", self._runtime.pyodide, self._snapshot],
            reads=[self._runtime.pyodide, self._snapshot],
            memory_mib=self._memory_mib,
        )
        started = Started(command, env=_environment(), prepare=self._prepare, cpu=cpu)
        deadline = time.monotonic() + START_S
        try:
            interpreter = Interpreter(started, [side], deadline)
            interpreter.wait_until_up(deadline)
            return interpreter
        except (Ended, OutOfTime) as why:
            started.end()
            raise CannotStart(f"{self._runtime.deno} does not run Pyodide: {why}") from None

    def close(self) -> None:
        pass

    def _prepare(self) -> None:
        os.chdir("/")
        limit(self._bounds)


class _Scripts:
    """All runs of a program are in one interpreter, each with fresh globals. After a run that is
    cut off, the next has a new one.
    """

    def __init__(
        self, sandbox: PyodideSandbox, program: str, output_bytes_max: int, cpu: CpuTime | None
    ) -> None:
        self._cpu = cpu
        self._sandbox = sandbox
        self._program = program
        self._output_bytes_max = output_bytes_max
        self._interpreter: Interpreter | None = None

    def ready(self) -> None:
        if self._interpreter is None:
            self._interpreter = self._sandbox.started("script", self._cpu)

    def run(self, stdin: str, deadline: float) -> str:
        self.ready()
        interpreter = self._interpreter
        assert interpreter is not None
        try:
            limit = self._output_bytes_max
            message = {"source": self._program, "stdin": stdin, "output_bytes_max": limit}
            interpreter.send(message, deadline)
            reply = interpreter.receive(deadline)
        except Ended:
            self.close()
            raise
        code, error, output = (reply.get(name) for name in ("code", "error", "output"))
        if output is None:
            raise Ended("output", f"it printed more than {self._output_bytes_max} bytes")
        if not isinstance(output, str) or not isinstance(error, str):
            self.close()
            raise Ended("crash", "it wrote what is no message")
        if code != 0:
            kind: Outcome = "memory" if error.startswith("MemoryError") else "error"
            raise Ended(kind, error)
        return output

    def close(self) -> None:
        if self._interpreter is not None:
            self._interpreter.close()
            self._interpreter = None


def snapshot_of(runtime: Runtime) -> str:
    """The file with the memory of an interpreter that has just started, made on first use. Its name
    says what made it.
    """
    for what, place in (("Deno", runtime.deno), ("its script", runtime.host)):
        if not os.path.isfile(place):
            raise CannotStart(f"there is no {what} at {place}")
    package = Path(runtime.pyodide, "package.json")
    if not package.is_file():
        raise CannotStart(f"there is no package pyodide at {runtime.pyodide}")
    version = subprocess.run([runtime.deno, "--version"], capture_output=True, check=False).stdout
    inside = modules()
    parts = [version, package.read_bytes(), Path(runtime.host).read_bytes(), inside.encode()]
    name = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    Path(runtime.cache).mkdir(mode=0o700, parents=True, exist_ok=True)
    path = Path(runtime.cache, f"pyodide-{name}.memory")
    with open(path.with_suffix(".lock"), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            fresh = path.with_suffix(".new")
            fresh.write_bytes(_created(runtime, inside))
            fresh.replace(path)
    return str(path)


def _created(runtime: Runtime, inside: str) -> bytes:
    command = _command(runtime, ["make", runtime.pyodide], reads=[runtime.pyodide])
    done = subprocess.run(
        command,
        input=frame(inside),
        env=_environment(),
        capture_output=True,
        timeout=START_S,
        check=False,
        cwd="/",
    )
    if done.returncode != 0 or not done.stdout:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise CannotStart(f"{runtime.deno} does not run Pyodide: {''.join(last)}")
    return done.stdout


def _command(
    runtime: Runtime, arguments: list[str], *, reads: list[str], memory_mib: int | None = None
) -> list[str]:
    pages = [] if memory_mib is None else [f"--wasm-max-mem-pages={memory_mib * PAGES_PER_MIB}"]
    heap = [] if memory_mib is None else [f"--max-old-space-size={memory_mib}"]
    v8 = [f"--v8-flags={','.join([*pages, *heap])}"] if pages else []
    read = ",".join(place.replace(",", ",,") for place in reads)
    return [runtime.deno, "run", *FLAGS, *v8, f"--allow-read={read}", runtime.host, *arguments]


def _environment() -> dict[str, str]:
    return {"DENO_DIR": NO_DIRECTORY, "NO_COLOR": "1", "DENO_NO_UPDATE_CHECK": "1"}
