"""
The agent's line to the hub: connects again for as long as the grace lasts, counts and resends what
must arrive.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError, WebSocketException

from holdfast_worker.agent_log import log
from holdfast_worker.faults import Faults
from holdfast_worker.limits import MESSAGE_BYTES_MAX
from holdfast_worker.protocol import (
    ProtocolError,
    TooLarge,
    blob_frames,
    decode_engine,
    encode_agent,
)

HANDSHAKE_S = 10.0  # An engine that accepts connections is alive; it may be busy.
RETRY_S = 0.1
# How often the hub's file is looked at while an engine, which may be frozen, holds the line.
POLL_S = 0.5
DROPPABLE_MAX = 1_000
# What an engine says that does not take what it was sent. Of a broken network come others.
REFUSALS = {
    1002: "protocol error",
    1003: "unsupported data",
    1007: "invalid data",
    1008: "refused",
    1009: "too large",
}
REFUSALS_MAX = 3  # In a row: what waits to be sent would be refused for ever.
DEFAULT_GRACE_S = 2.0
UNSENDABLE = (
    TooLarge,
    ProtocolError,
    ValueError,
)  # What `send` raises for a message that the line cannot carry.
ANSWERS = {"result", "error"}  # Of tasks. The agent keeps them for longer than the line does.
COUNTED = {
    "hello",
    "welcome",
    "accepted",
    "result",
    "error",
    "group",
    "start_group",
    "stop_group",
    "task",
    "cancel",
    "shutdown",
}


class Superseded(Exception):
    """Another engine of a higher epoch has announced itself."""


class EngineGone(Exception):
    """No engine for longer than the grace, or one that has no use for this agent."""


@dataclass
class Reliable:
    """
    A message that is kept until the engine has it durably. Its blobs precede it, complete, at every
    sending.
    """

    seq: int
    message: dict[str, Any]
    text: str
    blobs: list[bytes]

    def frames(self) -> Iterator[str | bytes]:
        for index, data in enumerate(self.blobs):
            yield from blob_frames(self.message["task"], index, data)
        yield self.text


class Link:
    """
    `hello` makes the first message of every connection; `receive` gets each engine message once, in
    order.
    """

    def __init__(
        self,
        hub_file: Path,
        *,
        hello: Callable[[], dict[str, Any]],
        heartbeat: Callable[[], dict[str, Any]],
        receive: Callable[[dict[str, Any]], None],
        phase: Callable[[], str],
        grace_s: float = DEFAULT_GRACE_S,
    ) -> None:
        self.engine_boot: str | None = None
        self.epoch = 0  # The highest seen: a lower one is of an engine that was replaced.
        self.grace_s = grace_s
        self._hub_file = hub_file
        self._hello, self._heartbeat, self._receive, self._phase = hello, heartbeat, receive, phase
        self._faults = Faults.from_environment("agent", actions={"drop": self.drop})
        self._connection: ClientConnection | None = None
        self._outbox: list[Reliable] = []
        self._last_seq = 0
        self._sent_seq = 0  # On this connection.
        self._received_seq = 0  # Of this engine boot.
        self._droppable: deque[tuple[str, str]] = deque(maxlen=DROPPABLE_MAX)  # Kind and text.
        self._wake = asyncio.Event()
        self._seen_at = time.monotonic()
        self._hub_stamp: tuple[int, int] | None = None  # Of the file as it was read last.
        self._refusals = 0  # In a row.
        self._said = ""  # Why there is no line, as it was logged last.

    # Sending.

    def send(self, message: dict[str, Any], blobs: list[bytes] | None = None) -> Reliable:
        """Resent after a reconnect until acknowledged. Raises one of UNSENDABLE."""
        numbered = {**message, "seq": self._last_seq + 1}
        item = Reliable(self._last_seq + 1, numbered, encode_agent(numbered), blobs or [])
        self._last_seq += 1
        self._outbox.append(item)
        self._wake.set()
        return item

    def offer(self, message: dict[str, Any]) -> None:
        """
        May be lost: progress, heartbeats, acks. Goes out before reliable messages and between
        blobs' frames.
        """
        try:
            self._droppable.append((message["type"], encode_agent(message)))
        except UNSENDABLE as error:
            log(str(error))
            return
        self._wake.set()

    def forget(self, sent: Reliable) -> None:
        """Takes back a reliable message that the engine said it does not want."""
        self._outbox = [item for item in self._outbox if item is not sent]

    def is_kept(self, sent: Reliable) -> bool:
        """Whether the engine has not acknowledged it yet."""
        return any(item is sent for item in self._outbox)

    @property
    def received_seq(self) -> int:
        return self._received_seq

    def drop(self) -> None:
        """Cuts the line as a broken network would: no closing handshake."""
        if self._connection:
            self._connection.transport.abort()

    async def close(self, timeout_s: float) -> None:
        """Waits until what is queued has left, or the time is over, and says goodbye."""
        deadline = time.monotonic() + timeout_s
        while (
            self._connection and time.monotonic() < deadline and (self._droppable or self._unsent())
        ):
            await asyncio.sleep(0.01)
        if self._connection:
            await asyncio.wait([asyncio.create_task(self._connection.close())], timeout=timeout_s)

    # Connections.

    async def run(self) -> None:
        """Serves connections until the engine is gone for longer than the grace."""
        self._seen_at = time.monotonic()
        while True:
            try:
                await self._session_until_superseded()
                reason = "it closed the connection"
            except Superseded as superseded:
                log(str(superseded))
                self._seen_at = time.monotonic()
                continue
            except (TimeoutError, OSError, WebSocketException, ValueError) as error:
                reason = f"{type(error).__name__}: {error}"
                self._count_refusal(error)
            if reason != self._said:
                log(f"No line to an engine: {reason}")
                self._said = reason
            if time.monotonic() - self._seen_at > self.grace_s:
                raise EngineGone(f"no engine for {self.grace_s} s: {reason}")
            await asyncio.sleep(RETRY_S)

    def _count_refusal(self, error: Exception) -> None:
        """
        Ends an endless loop: an engine that closes the line because of a message, which is then
        sent again.
        """
        closed = error.rcvd if isinstance(error, ConnectionClosedError) else None
        if closed is None or closed.code not in REFUSALS:
            return
        self._refusals += 1
        if self._refusals >= REFUSALS_MAX:
            what = f"{closed.code}, {REFUSALS[closed.code]}: {closed.reason or 'no reason'}"
            raise ProtocolError(
                f"Cannot stay on the line because the engine closed it {self._refusals} times ({what})"
            )

    async def _session_until_superseded(self) -> None:
        """
        A session with one engine. It ends at once when another takes the run over: a frozen engine
        closes nothing.
        """
        await until_one_ends(self._session(), self._until_superseded())

    async def _until_superseded(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            try:
                if self._stamp() == self._hub_stamp:
                    continue
                known = self.epoch
                hub = self._read_hub()
            except (OSError, ValueError):
                continue  # No file, or one of an engine that was replaced: who is there stays.
            if hub["epoch"] > known:
                raise Superseded(
                    f"Epoch {hub['epoch']} has the run now, after {known}: going there"
                )

    def _stamp(self) -> tuple[int, int]:
        status = self._hub_file.stat()
        return status.st_mtime_ns, status.st_ino

    async def _session(self) -> None:
        hub = self._read_hub()
        headers = {"Authorization": f"Bearer {hub['token']}"}
        options: dict[str, Any] = {
            "max_size": MESSAGE_BYTES_MAX,
            "compression": None,
            "proxy": None,
            "open_timeout": HANDSHAKE_S,
        }
        async with connect(hub["url"], additional_headers=headers, **options) as connection:
            try:
                heartbeat_s = await self._greet(connection)
                self._connection = connection
                await self._converse(connection, heartbeat_s)
            finally:
                if self._connection is connection:
                    self._connection, self._seen_at = None, time.monotonic()
                # Nothing to say any more, and a closing handshake may take seconds.
                connection.transport.abort()

    def _read_hub(self) -> dict[str, Any]:
        """Before every connect: a new engine writes a new address and token."""
        self._hub_stamp = self._stamp()
        hub = json.loads(self._hub_file.read_text())
        if not isinstance(hub, dict):
            raise ValueError(f"Cannot use {self._hub_file} because it is not what an engine writes")
        missing = [name for name in ("url", "token", "epoch") if name not in hub]
        if missing:
            raise ValueError(f"Cannot use {self._hub_file} because it has no {', '.join(missing)}")
        if hub["epoch"] < self.epoch:
            raise ValueError(
                f"{self._hub_file} is of epoch {hub['epoch']}, this agent has served {self.epoch}"
            )
        self.epoch = hub["epoch"]
        return hub

    async def _greet(self, connection: ClientConnection) -> float:
        self._count("hello")
        await connection.send(encode_agent(self._hello()))
        welcome = decode_engine(await asyncio.wait_for(connection.recv(), HANDSHAKE_S))
        self._count(welcome["type"])
        if welcome["type"] != "welcome":
            raise ProtocolError(
                f"Cannot start because the engine's first message is '{welcome['type']}', not 'welcome'"
            )
        if welcome["epoch"] < self.epoch:
            await connection.send(encode_agent({"type": "fenced", "epoch": self.epoch}))
            raise ValueError(
                f"an engine of epoch {welcome['epoch']} was fenced: this agent has served {self.epoch}"
            )
        if welcome["verdict"] == "drop":
            raise EngineGone("the engine has no use for this agent's work (verdict drop)")
        self._seen_at = time.monotonic()
        self.epoch = welcome["epoch"]
        if welcome["engine_boot"] != self.engine_boot:
            self._begin_anew(welcome["engine_boot"])
        self.grace_s = welcome["grace_ms"] / 1000
        self._acknowledged(welcome["received_seq"])
        self._sent_seq = welcome["received_seq"]
        self._droppable.clear()
        self._said = ""
        self._receive(welcome)
        return welcome["heartbeat_ms"] / 1000

    def _begin_anew(self, engine_boot: str) -> None:
        """
        For another engine: numbers count anew. It knows of the answers by the hello, and says which
        ones it wants.
        """
        self.engine_boot, self._received_seq = engine_boot, 0
        kept = [item for item in self._outbox if item.message["type"] not in ANSWERS]
        self._outbox, self._last_seq, self._sent_seq = [], 0, 0
        for item in kept:
            self.send(item.message)

    async def _converse(self, connection: ClientConnection, heartbeat_s: float) -> None:
        await until_one_ends(
            self._read(connection), self._write(connection), self._beat(heartbeat_s)
        )

    async def _read(self, connection: ClientConnection) -> None:
        async for frame in connection:
            message = decode_engine(frame)
            self._count(message["type"])
            if message["epoch"] < self.epoch:
                self.offer({"type": "fenced", "epoch": self.epoch})
                continue
            self.epoch = message["epoch"]
            if message["type"] == "ack":
                self._acknowledged(message["received_seq"])
            elif "seq" in message:
                self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        if message["seq"] > self._received_seq:
            self._received_seq = message["seq"]
            self._refusals = 0
            self._receive(message)
        self.offer({"type": "ack", "received_seq": self._received_seq})

    async def _write(self, connection: ClientConnection) -> None:
        while True:
            await self._send_droppable(connection)
            item = next(iter(self._unsent()), None)
            if item is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            for frame in item.frames():
                await self._send_droppable(connection)  # Heartbeats never wait for a large result.
                self._count("result")
                await connection.send(frame)
            self._sent_seq = item.seq

    async def _send_droppable(self, connection: ClientConnection) -> None:
        while self._droppable:
            kind, text = self._droppable.popleft()
            self._count(kind)
            await connection.send(text)

    async def _beat(self, heartbeat_s: float) -> None:
        while True:
            self.offer(self._heartbeat())
            await asyncio.sleep(heartbeat_s)

    def _unsent(self) -> list[Reliable]:
        return [item for item in self._outbox if item.seq > self._sent_seq]

    def _acknowledged(self, seq: int) -> None:
        left = [item for item in self._outbox if item.seq > seq]
        if len(left) < len(self._outbox):
            self._refusals = 0
        self._outbox = left

    def _count(self, kind: str) -> None:
        """
        Frames are a fault's events. Those that come with time (heartbeats, progress, acks) are not
        counted, or N would be a time in disguise.
        """
        if kind in COUNTED:
            self._faults.at("frame", self._phase())


async def until_one_ends(*work: Coroutine[Any, Any, None]) -> None:
    """
    Runs all at once until the first ends, raises what it raised, and leaves none of the others
    running.
    """
    parts = [asyncio.create_task(part) for part in work]
    try:
        done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for part in done:
            part.result()
    finally:
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
