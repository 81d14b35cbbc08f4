"""
The agent's line to the hub: connects again for as long as the grace lasts, counts and resends what
must arrive.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError, WebSocketException

from holdfast_worker.agent.log import log
from holdfast_worker.faults import Faults
from holdfast_worker.hub_file import HubAddress, read_hub, stamp_of
from holdfast_worker.limits import MESSAGE_BYTES_MAX
from holdfast_worker.wire.frame import DroppableFrame, ReliableFrame
from holdfast_worker.wire.frames import (
    AgentAck,
    AgentError,
    AgentFenced,
    AgentHeartbeat,
    AgentHello,
    AgentResult,
    EngineAck,
    EngineFrame,
    EngineWelcome,
)
from holdfast_worker.wire.protocol import (
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
# What `send` raises for a message that the line cannot carry.
UNSENDABLE = (TooLarge, ProtocolError, ValueError)
ANSWERS = (AgentResult, AgentError)  # The agent keeps them for longer than the line does.
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
    A message that is kept until the engine has it durably. A result's blobs precede it, complete,
    at every sending.
    """

    seq: int
    frame: ReliableFrame
    text: str
    blobs: list[bytes]

    def frames(self) -> Iterator[str | bytes]:
        if isinstance(self.frame, AgentResult):
            for index, data in enumerate(self.blobs):
                yield from blob_frames(self.frame.task, index, data)
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
        hello: Callable[[], AgentHello],
        heartbeat: Callable[[], AgentHeartbeat],
        receive: Callable[[EngineFrame], None],
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
        self._reason = ""  # Why there is no line, as it was logged last.

    # Sending.

    def send(self, frame: ReliableFrame, blobs: list[bytes] | None = None) -> Reliable:
        """Resent after a reconnect until acknowledged. Raises one of UNSENDABLE."""
        seq = self._last_seq + 1
        item = Reliable(seq, frame, encode_agent(frame, seq=seq), blobs or [])
        self._last_seq = seq
        self._outbox.append(item)
        self._wake.set()
        return item

    def offer(self, frame: DroppableFrame) -> None:
        """
        May be lost: progress, heartbeats, acks. Goes out before reliable messages and between
        blobs' frames.
        """
        try:
            self._droppable.append((frame.kind, encode_agent(frame)))
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
            if reason != self._reason:
                log(f"No line to an engine: {reason}")
                self._reason = reason
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
                f"Cannot stay on the line because the engine closed it {self._refusals} times "
                f"({what})"
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
                if stamp_of(self._hub_file) == self._hub_stamp:
                    continue
                known = self.epoch
                hub = self._read_hub()
            except (OSError, ValueError):
                continue  # No file, or one of an engine that was replaced: who is there stays.
            if hub.epoch > known:
                raise Superseded(f"Epoch {hub.epoch} has the run now, after {known}: going there")

    async def _session(self) -> None:
        hub = self._read_hub()
        opening = connect(
            hub.url,
            additional_headers={"Authorization": f"Bearer {hub.token}"},
            max_size=MESSAGE_BYTES_MAX,
            compression=None,
            proxy=None,
            open_timeout=HANDSHAKE_S,
        )
        async with opening as connection:
            try:
                heartbeat_s = await self._greet(connection)
                self._connection = connection
                await self._converse(connection, heartbeat_s)
            finally:
                if self._connection is connection:
                    self._connection, self._seen_at = None, time.monotonic()
                # Nothing to say any more, and a closing handshake may take seconds.
                connection.transport.abort()

    def _read_hub(self) -> HubAddress:
        """Before every connect: a new engine writes a new address and token."""
        self._hub_stamp = stamp_of(self._hub_file)
        hub = read_hub(self._hub_file)
        if hub.epoch < self.epoch:
            raise ValueError(
                f"{self._hub_file} is of epoch {hub.epoch}, this agent has served {self.epoch}"
            )
        self.epoch = hub.epoch
        return hub

    async def _greet(self, connection: ClientConnection) -> float:
        self._count("hello")
        await connection.send(encode_agent(self._hello()))
        welcome = decode_engine(await asyncio.wait_for(connection.recv(), HANDSHAKE_S))
        self._count(welcome.kind)
        if not isinstance(welcome, EngineWelcome):
            raise ProtocolError(
                f"Cannot start because the engine's first message is '{welcome.kind}', not "
                "'welcome'"
            )
        if welcome.epoch < self.epoch:
            await connection.send(encode_agent(AgentFenced(epoch=self.epoch)))
            raise ValueError(
                f"an engine of epoch {welcome.epoch} was fenced: this agent has served {self.epoch}"
            )
        if welcome.verdict == "drop":
            raise EngineGone("the engine has no use for this agent's work (verdict drop)")
        self._seen_at = time.monotonic()
        self.epoch = welcome.epoch
        if welcome.engine_boot != self.engine_boot:
            self._begin_anew(welcome.engine_boot)
        self.grace_s = welcome.grace_ms / 1000
        self._acknowledged(welcome.received_seq)
        self._sent_seq = welcome.received_seq
        self._droppable.clear()
        self._reason = ""
        self._receive(welcome)
        return welcome.heartbeat_ms / 1000

    def _begin_anew(self, engine_boot: str) -> None:
        """
        For another engine: numbers count anew. It knows of the answers by the hello, and says which
        ones it wants.
        """
        self.engine_boot, self._received_seq = engine_boot, 0
        kept = [item for item in self._outbox if not isinstance(item.frame, ANSWERS)]
        self._outbox, self._last_seq, self._sent_seq = [], 0, 0
        for item in kept:
            self.send(item.frame)

    async def _converse(self, connection: ClientConnection, heartbeat_s: float) -> None:
        await until_one_ends(
            self._read(connection), self._write(connection), self._beat(heartbeat_s)
        )

    async def _read(self, connection: ClientConnection) -> None:
        async for received in connection:
            frame = decode_engine(received)
            self._count(frame.kind)
            if frame.epoch < self.epoch:
                self.offer(AgentFenced(epoch=self.epoch))
                continue
            self.epoch = frame.epoch
            match frame:
                case EngineAck():
                    self._acknowledged(frame.received_seq)
                case EngineWelcome():
                    pass  # Only the first message of a connection says anything.
                case _:
                    if frame.seq > self._received_seq:
                        self._received_seq = frame.seq
                        self._refusals = 0
                        self._receive(frame)
                    self.offer(AgentAck(received_seq=self._received_seq))

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
        unacknowledged = [item for item in self._outbox if item.seq > seq]
        if len(unacknowledged) < len(self._outbox):
            self._refusals = 0
        self._outbox = unacknowledged

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
