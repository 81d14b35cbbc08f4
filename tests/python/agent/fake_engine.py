"""
A tiny hub for the agent's tests: a real websockets server, a real agent process, and no opinion of
its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from wire_examples import checked_of_agent

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ROOT / "workers" / "python"
TOKEN = "a-token-for-tests"
WAIT_S = 60.0  # Two ranks import DeepSpeed: over 20 s when busy.

Message = dict[str, Any]


class FakeEngine:
    """
    `async with FakeEngine(tmp_path) as engine:` serves; `engine.start_agent()` runs the agent;
    `await engine.next(...)` waits for a message. All messages are checked by their classes and kept
    in `seen`.
    """

    def __init__(
        self, home: Path, *, boot: str = "engine-boot-1", epoch: int = 1, grace_ms: int = 400
    ) -> None:
        self.home, self.boot, self.epoch, self.grace_ms = home, boot, epoch, grace_ms
        self.preempt_grace_ms = 25_000
        self.verdict = "continue"
        self.task_verdicts: list[Message] = []
        self.acknowledge = True
        self.seen: list[Message] = []
        self.blobs: dict[tuple[str, int], bytearray] = {}
        self.frame_sizes: list[int] = []
        self.headers: list[dict[str, str]] = []
        self.received_seq = 0
        self.agents: list[subprocess.Popen[bytes]] = []
        self._seq = 0
        self._unacked: list[Message] = []
        self._news = asyncio.Condition()
        self._taken = 0
        self.connection: ServerConnection | None = None

    async def __aenter__(self) -> FakeEngine:
        await self.listen()
        return self

    async def listen(self, port: int = 0) -> None:
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            port,
            max_size=None,
            compression=None,
            process_request=self._authorize,
        )
        self.port = self._server.sockets[0].getsockname()[1]
        hub = {
            "url": f"ws://127.0.0.1:{self.port}",
            "token": TOKEN,
            "engine_boot": self.boot,
            "epoch": self.epoch,
        }
        (self.home / "hub.json").write_text(json.dumps(hub))

    async def __aexit__(self, *_: object) -> None:
        await self.die()
        for agent in self.agents:
            agent.kill()
            agent.wait()

    async def die(self) -> None:
        """As a killed engine: the port is closed and the line is cut."""
        self._server.close(close_connections=False)
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        if self.connection:
            self.connection.transport.abort()

    def _authorize(self, _: ServerConnection, request: Request) -> Response | None:
        self.headers.append(dict(request.headers.raw_items()))
        return None

    def start_agent(self, **env: str) -> subprocess.Popen[bytes]:
        with (self.home / "agent.log").open("ab") as log:
            agent = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "holdfast_worker.agent",
                    "--hub-file",
                    str(self.home / "hub.json"),
                    "--agent-id",
                    "host/0",
                ],
                env={
                    **os.environ,
                    "PYTHONPATH": str(PACKAGES),
                    "HOLDFAST_ARTIFACTS": str(self.home / "artifacts"),
                    "HOLDFAST_HOME_DIR": str(self.home),
                    **env,
                },
                stderr=log,
            )
        self.agents.append(agent)
        return agent

    async def _serve(self, connection: ServerConnection) -> None:
        try:
            await self._converse(connection)
        except ConnectionClosed:
            pass

    async def _converse(self, connection: ServerConnection) -> None:
        hello = checked_of_agent(json.loads(await connection.recv()))
        await self._keep(hello)
        if hello["engine_boot"] != self.boot:
            self.received_seq = 0
        self.connection = connection
        welcome = {
            "type": "welcome",
            "engine_boot": self.boot,
            "run": "run-1",
            "heartbeat_ms": 50,
            "grace_ms": self.grace_ms,
            "preempt_grace_ms": self.preempt_grace_ms,
            "received_seq": self.received_seq,
            "verdict": self.verdict,
            "tasks": self.task_verdicts,
        }
        await self.raw(welcome)
        for message in [item for item in self._unacked if item["seq"] > hello["received_seq"]]:
            await self.raw(message)
        async for frame in connection:
            await self._take(frame)

    async def _take(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes):
            self.frame_sizes.append(len(frame))
            piece = msgpack.unpackb(frame)
            whole = self.blobs.setdefault((piece["task"], piece["blob"]), bytearray())
            if piece["offset"] == 0:
                whole.clear()
            assert len(whole) == piece["offset"]
            whole.extend(piece["data"])
            return
        message = checked_of_agent(json.loads(frame))
        if message["type"] == "ack":
            self._unacked = [
                item for item in self._unacked if item["seq"] > message["received_seq"]
            ]
        if "seq" in message:
            if message["seq"] <= self.received_seq:
                return
            if self.acknowledge:
                self.received_seq = message["seq"]
        if message["type"] == "result":
            message["outputs"] = [
                self._output(message["task"], output) for output in message["outputs"]
            ]
        await self._keep(message)
        if "seq" in message and self.acknowledge:
            with suppress(
                ConnectionClosed
            ):  # The agent has said goodbye; what it sent before is still to be read.
                await self.raw({"type": "ack", "received_seq": message["seq"]})

    def _output(self, task: str, output: Message) -> Any:
        return json.loads(
            output["json"] if "json" in output else self.blobs[(task, output["blob"])]
        )

    async def _keep(self, message: Message) -> None:
        async with self._news:
            self.seen.append(message)
            self._news.notify_all()

    async def raw(self, message: Message) -> None:
        assert self.connection
        await self.connection.send(json.dumps({"epoch": self.epoch, **message}))

    async def send(self, message: Message) -> Message:
        """A reliable message: with the next seq, resent after a reconnect."""
        self._seq += 1
        numbered = {**message, "seq": self._seq}
        self._unacked.append(numbered)
        if self.connection:  # Else it goes out with the welcome.
            await self.raw(numbered)
        return numbered

    async def next(self, kind: str, where: Callable[[Message], bool] = lambda _: True) -> Message:
        """The next message of this type, from where the last `next` stopped."""

        def find() -> Message | None:
            for place in range(self._taken, len(self.seen)):
                if self.seen[place]["type"] == kind and where(self.seen[place]):
                    self._taken = place + 1
                    return self.seen[place]
            return None

        async with self._news:
            try:
                await asyncio.wait_for(
                    self._news.wait_for(lambda: setattr(self, "_found", find()) or self._found),
                    WAIT_S,
                )
            except TimeoutError:
                kinds = [item["type"] for item in self.seen[self._taken :]]
                log = (
                    (self.home / "agent.log").read_text()
                    if (self.home / "agent.log").exists()
                    else ""
                )
                raise AssertionError(
                    f"no '{kind}' in {WAIT_S} s; since the last: {kinds[-20:]}\n{log}"
                ) from None
            return self._found

    def start_message(self, group: str = "trainer", **fields: Any) -> Message:
        return {
            "type": "start_group",
            "group": group,
            "role": group.split("/")[0],
            "generation": 1,
            "ranks": 1,
            "python": sys.executable,
            "module": "echo_worker",
            "env": {"PYTHONPATH": str(ROOT / "tests" / "python")},
            "spec": {},
            "spec_hash": "hash-of-the-spec",
            "interface": None,
            "log_dir": str(self.home / "logs"),
            "start_timeout_ms": 15_000,
            **fields,
        }

    async def start_group(self, group: str = "trainer", **fields: Any) -> Message:
        """Starts a group and waits until it is ready."""
        await self.send(self.start_message(group, **fields))
        generation = fields.get("generation", 1)
        state = await self.next(
            "group", lambda m: m["group"] == group and m["generation"] == generation
        )
        assert state["state"] == "ready", state
        return state

    async def task(self, op: str, args: Any = None, **fields: Any) -> Message:
        task_args = (
            args
            if isinstance(args, dict) and "artifact" in args
            else {"json": json.dumps(args or {})}
        )
        task = {
            "type": "task",
            "task": f"task-{self._seq + 1}",
            "group": "trainer",
            "generation": 1,
            "key": f"k/{op}",
        }
        return await self.send(
            {**task, "attempt": 1, "op": op, "args": task_args, "args_hash": f"hash-{op}", **fields}
        )

    async def call(self, op: str, args: Any = None, **fields: Any) -> Message:
        """A task and its answer, `result` or `error`."""
        task = await self.task(op, args, **fields)
        return await self.answer(task["task"])

    async def answer(self, task: str) -> Message:
        async with self._news:
            await asyncio.wait_for(
                self._news.wait_for(lambda: self._answer(task) is not None), WAIT_S
            )
        answer = self._answer(task)
        assert answer
        return answer

    def _answer(self, task: str) -> Message | None:
        return next(
            (m for m in self.seen if m["type"] in ("result", "error") and m["task"] == task), None
        )


def alive(pid: int) -> bool:
    """Neither gone nor a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def until_dead(pids: list[int], within_s: float = 5.0) -> float:
    """Waits for the end of processes. Returns the seconds it took."""
    started = time.monotonic()
    while any(alive(pid) for pid in pids):
        if time.monotonic() - started > within_s:
            raise AssertionError(
                f"still alive after {within_s} s: {[pid for pid in pids if alive(pid)]}"
            )
        await asyncio.sleep(0.01)
    return time.monotonic() - started
