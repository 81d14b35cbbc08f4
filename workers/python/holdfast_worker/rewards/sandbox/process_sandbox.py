"""The sandbox `process`: CPython in separate namespaces, with limits."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Literal

from holdfast_worker.removal import remove_tree
from holdfast_worker.rewards.sandbox.cpu_time import CpuTime
from holdfast_worker.rewards.sandbox.interpreter import PACKAGE, Interpreter, Scripts, modules
from holdfast_worker.rewards.sandbox.started import (
    CannotStart,
    Ended,
    OutOfTime,
    Started,
    end_strangers,
)
from holdfast_worker.rewards.sandbox.walls import (
    PROGRAM,
    Bounds,
    clean_environment,
    unwalled,
    walled,
)

START_S = 60.0
DIRECTORY = "holdfast-sandbox-"
PYTHON = (sys.executable, "-s", "-P", "-B")

# Its channel is what were its standard input and output; a program has nothing there.
CHANNEL = """
import os as _os, struct as _struct
_in, _out, _null = _os.dup(0), _os.dup(1), _os.open("/dev/null", 2)
_os.dup2(_null, 0); _os.dup2(_null, 1)
def _exactly(length):
    data = b""
    while len(data) < length:
        part = _os.read(_in, length - len(data))
        if not part: _os._exit(0)
        data += part
    return data
def receive():
    return _exactly(*_struct.unpack(">I", _exactly(4))).decode()
def send(text):
    data = text.encode(); data = memoryview(_struct.pack(">I", len(data)) + data)
    while data: data = data[_os.write(_out, data):]
"""
INTERPRETER = f"""{CHANNEL}
def _serve():
    import json, sys, types
    for name, source in json.loads(receive()).items():
        module = sys.modules[name] = types.ModuleType(name)
        exec(compile(source, name, "exec"), module.__dict__)
    sys.modules["{PACKAGE}.sides"].serve(receive(), receive, send)
_serve()
"""


class ProcessSandbox:
    """`walls` False: limits alone. Raises CannotStart if this machine cannot."""

    def __init__(self, bounds: Bounds, *, walls: bool, output_bytes_max: int) -> None:
        self._bounds = bounds
        self._walls = walls
        self._output_bytes_max = output_bytes_max
        self._check()

    def scripts(self, program: str, cpu: CpuTime | None = None) -> Scripts:
        return _Scripts(self, program, self._output_bytes_max, cpu)

    def interpreter(
        self, side: Literal["program", "tests"], cpu: CpuTime | None = None
    ) -> Interpreter:
        started = _InDirectory(self, [*PYTHON, "-c", INTERPRETER], program=None, cpu=cpu)
        deadline = time.monotonic() + START_S
        try:
            interpreter = Interpreter(started, [modules(), side], deadline)
            interpreter.wait_until_up(deadline)
            return interpreter
        except (Ended, OutOfTime) as why:
            started.end()
            raise CannotStart(str(why)) from None

    def close(self) -> None:
        pass

    def prepare(self, program: str | None, directory: str | None) -> None:
        """In the child."""
        if self._walls:
            walled(program, self._bounds)
        else:
            assert directory is not None
            os.chdir(directory)
            unwalled(self._bounds)

    @property
    def walls(self) -> bool:
        return self._walls

    def _check(self) -> None:
        scripts = self.scripts("print(1 + 1)")
        try:
            printed = scripts.run("", time.monotonic() + START_S)
        except (Ended, OutOfTime) as why:
            raise CannotStart(str(why)) from None
        finally:
            scripts.close()
        if printed.strip() != "2":
            raise CannotStart("a program that prints 2 does not")


class _Scripts:
    def __init__(
        self, sandbox: ProcessSandbox, program: str, output_bytes_max: int, cpu: CpuTime | None
    ) -> None:
        self._cpu = cpu
        self._sandbox = sandbox
        self._program = program
        self._output_bytes_max = output_bytes_max

    def ready(self) -> None:
        pass

    def run(self, stdin: str, deadline: float) -> str:
        with tempfile.TemporaryFile() as file:
            file.write(stdin.encode(errors="replace"))
            file.seek(0)
            started = _InDirectory(
                self._sandbox,
                [*PYTHON],
                program=self._program,
                stdin=file.fileno(),
                cpu=self._cpu,
            )
            try:
                return started.output(deadline, self._output_bytes_max).decode(errors="replace")
            finally:
                started.end()

    def close(self) -> None:
        pass


class _InDirectory(Started):
    """Without walls, the program's directory is one of ours, which ends with it."""

    def __init__(
        self,
        sandbox: ProcessSandbox,
        argv: list[str],
        *,
        program: str | None,
        stdin: int | None = None,
        cpu: CpuTime | None = None,
    ) -> None:
        self._top: Path | None = None
        work: str | None = None
        place = PROGRAM
        if not sandbox.walls:
            self._top = Path(tempfile.mkdtemp(prefix=DIRECTORY))
            os.chmod(self._top, 0o755)
            place = str(self._top / "program.py")
            Path(place).write_text(program or "", "utf-8", "surrogatepass")
            work = str(self._top / "work")
            os.mkdir(work)
            os.chmod(work, 0o777)
        super().__init__(
            argv if program is None else [*argv, place],
            env=clean_environment({}),
            prepare=partial(sandbox.prepare, program, work),
            stdin=stdin,
            cpu=cpu,
        )

    def end(self) -> None:
        super().end()
        if self._top is not None:
            end_strangers([])
            remove_tree(self._top, home=self._top.parent, named=f"{DIRECTORY}.*")
            self._top = None
