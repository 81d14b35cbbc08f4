"""
A worker with no purpose but to be tested with, by both languages: `echo_worker`, with tests/python
on PYTHONPATH.

`spec` may hold {"boot": "import_error" | "raise" | "exit" | "hang" | "port_taken_once",
"boot_rank": r, "children": n}.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from holdfast_worker.operation import BadDataError, OperationIO, RankContext, UserCodeError
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import ArtifactRef


class OutOfMemoryError(RuntimeError):
    """Named as torch's."""


class Worker:
    def __init__(self, context: RankContext) -> None:
        self.context = context
        self.children: list[int] = []
        self.calls = 0
        names = (
            "echo sleep_until_cancelled hang hold_gil crash exit_code blob raise_user_code raise_bad_data raise_other"
            " raise_peer raise_oom progress pids environment read_artifact count wait_for escape flood chatter"
        )
        self.operations = {name: getattr(self, name) for name in names.split()}

    def boot(self) -> dict[str, Any]:
        mode = self.context.spec.get("boot")
        print(f"booting rank {self.context.rank} of {self.context.group}", flush=True)
        for _ in range(self.context.spec.get("children", 0)):
            self.children.append(subprocess.Popen(["sleep", "1000"]).pid)
        if mode and self.context.rank == self.context.spec.get("boot_rank", 0):
            self._misbehave(mode)
        if mode == "long_info":
            return {"text": "x" * 1_000_000}
        return {"device": "cpu", "repeats": "bits", "pid": os.getpid(), "echo": self.context.spec}

    def _misbehave(self, mode: str) -> None:
        if mode == "import_error":
            import a_module_that_is_not_there  # noqa: F401
        if mode == "raise":
            raise ValueError("the boot was asked to fail")
        if mode == "exit":
            print("last words before exit 7", flush=True)
            os._exit(7)
        if mode == "hang":
            time.sleep(1000)
        marker = Path(self.context.log_dir) / "port_was_taken"
        if mode == "port_taken_once" and not marker.exists():
            marker.write_text(str(self.context.master_port))
            raise RuntimeError(
                "The server socket has failed to listen: EADDRINUSE, address already in use"
            )

    def _mine(self, args: dict[str, Any]) -> bool:
        """Whether this rank is the one meant; without `rank` all are."""
        return args.get("rank") in (None, self.context.rank)

    def echo(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        return {"rank": self.context.rank, "args": args, "key": io.key, "attempt": io.attempt}

    def count(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        """How often it was called: the proof that a repeated task does not run twice."""
        self.calls += 1
        return {"count": self.calls}

    def wait_for(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        """Until there is a file: how a test decides when an operation ends."""
        io.progress("waiting", 0)
        while not Path(args["file"]).exists():
            io.check_cancelled()
            time.sleep(0.005)
        return {"pid": os.getpid()}

    def sleep_until_cancelled(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        io.progress("sleeping", 0)
        while True:
            io.check_cancelled()
            time.sleep(0.005)

    def hang(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        io.progress("hanging", 0)
        while self._mine(args):
            time.sleep(1000)
        return {}

    def hold_gil(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        """Sleeps in C without letting go of the interpreter: no other thread of this rank runs."""
        io.progress("holding", 0)
        time.sleep(0.05)
        ctypes.PyDLL(None).usleep(int(args["ms"]) * 1000)
        return {}

    def crash(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        if not self._mine(args):
            time.sleep(1000)
        print("about to crash", flush=True)
        os.kill(os.getpid(), getattr(signal, args.get("signal", "SIGKILL")))
        time.sleep(1000)
        return {}

    def exit_code(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        os._exit(args["code"])

    def blob(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        """`sizes`: one blob each, of the byte i % 251 repeated."""
        return {"blobs": [io.blob(bytes([i % 251]) * size) for i, size in enumerate(args["sizes"])]}

    def raise_user_code(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        if self._mine(args):
            raise UserCodeError(args.get("message", "the user's code failed"))
        time.sleep(args.get("others_s", 1000))
        return {}

    def raise_bad_data(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        raise BadDataError("row 3 has no field 'answer'")

    def raise_other(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        if self._mine(args):
            raise ValueError("a bug")
        time.sleep(1000)
        return {}

    def raise_peer(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        """Rank `root` has a real error a little later than the others see its cascade."""
        if self.context.rank == args["root"]:
            time.sleep(0.2)
            raise OSError(22, "Invalid argument")
        raise RuntimeError(
            "[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:29500"
        )

    def raise_oom(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    def progress(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        for step in range(args["steps"]):
            io.progress("steps", step + 1, args["steps"], loss=1.0 / (step + 1))
        return {"steps": args["steps"]}

    def flood(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        """Prints so many bytes in numbered lines, as user code may, and fails if it is asked to."""
        line, written = 0, 0
        while written < args["bytes"]:
            line += 1
            text = f"line {line} {'x' * 1000}\n"
            written += os.write(1, text.encode())
        print(f"the last of {line} lines", flush=True)
        if args.get("fail"):
            raise UserCodeError("the flood was asked to fail")
        return {"lines": line}

    def chatter(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        """Progress that no message should hold."""
        io.progress(
            "x" * args["chars"],
            float("nan"),
            float("inf"),
            **{f"m{i}": 1.0 for i in range(args["metrics"])},
        )
        return {}

    def pids(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        return {"pid": os.getpid(), "children": self.children, "parent": os.getppid()}

    def escape(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        """
        A process in a session of its own, without our environment, whose parent is gone: as daemons
        are made.
        """
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.setsid()
            daemon = os.fork()
            if daemon == 0:
                os.execve("/bin/sleep", ["sleep", "1000"], {})
            os.write(writing, str(daemon).encode())
            os._exit(0)
        os.wait()
        return {"pid": int(os.read(reading, 32))}

    def environment(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        return {"env": dict(os.environ), "argv": sys.argv, "meets_at": self.context.master_addr}

    def read_artifact(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        return {"bytes": len(io.read_artifact(decode(ArtifactRef, args["ref"])))}
