"""
Length-prefixed MessagePack over a stream socket: how an agent and a rank, or a pool and its
process, talk.

A frame is its length as a little-endian uint32, then one MessagePack value. The rank's end is plain
blocking Python (any thread may send), the agent's end is asyncio.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from typing import Any

import msgpack

HEADER = struct.Struct("<I")
FRAME_MAX = (1 << 30) + (1 << 16)  # The largest blob of an answer, and the words around it.
BIG_INTEGER = 1  # Extension type.
UNICODE_ERRORS = "surrogatepass"  # Half a character, as JSON may hold and Python keep.
CHANNEL_VARIABLE = "HOLDFAST_CHANNEL_FD"
GUARD_VARIABLE = (
    "HOLDFAST_GUARD_FD"  # The reading end of a pipe that the agent holds open while it lives.
)


class ChannelClosed(Exception):
    """The other end is gone."""


def pack(message: Any) -> bytes:
    """One frame. Raises ValueError where a message has too many bytes or levels."""
    body = msgpack.packb(message, use_bin_type=True, default=_packed, unicode_errors=UNICODE_ERRORS)
    if len(body) > FRAME_MAX:
        raise ValueError(
            f"Cannot send a message of {len(body)} bytes because the limit is {FRAME_MAX}"
        )
    return HEADER.pack(len(body)) + body


def unpack(body: bytes) -> Any:
    return msgpack.unpackb(
        body,
        raw=False,
        strict_map_key=False,
        ext_hook=_unpacked,
        unicode_errors=UNICODE_ERRORS,
        max_bin_len=FRAME_MAX,
        max_str_len=FRAME_MAX,
        max_ext_len=FRAME_MAX,
    )


def _packed(value: Any) -> msgpack.ExtType:
    """An integer that JSON can write and MessagePack cannot: 1e20 of a row arrives as one."""
    if isinstance(value, int):
        return msgpack.ExtType(BIG_INTEGER, b"%x" % value)
    raise TypeError(f"Cannot send a {type(value).__name__}")


def _unpacked(code: int, data: bytes) -> Any:
    return int(data, 16) if code == BIG_INTEGER else msgpack.ExtType(code, data)


def checked_length(header: bytes) -> int:
    (length,) = HEADER.unpack(header)
    if length > FRAME_MAX:
        raise ChannelClosed(
            f"Cannot read a frame of {length} bytes because the limit is {FRAME_MAX}: the stream "
            "is broken"
        )
    return length


class Channel:
    """The blocking end. `send` may be called from any thread, `receive` from one."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        sock.setblocking(True)

    @classmethod
    def from_fd(cls, fd: int) -> Channel:
        """Takes over an inherited descriptor, and keeps it from this process's own children."""
        sock = socket.socket(fileno=fd)
        sock.set_inheritable(False)
        return cls(sock)

    def fileno(self) -> int:
        return self._sock.fileno()

    def send(self, message: Any) -> None:
        frame = pack(message)
        try:
            with self._lock:
                self._sock.sendall(frame)
        except OSError as error:
            raise ChannelClosed(str(error)) from None

    def receive(self) -> Any:
        return unpack(self._read(checked_length(self._read(HEADER.size))))

    def _read(self, length: int) -> bytes:
        data = bytearray(length)
        view, done = memoryview(data), 0
        while done < length:
            try:
                count = self._sock.recv_into(view[done:])
            except OSError as error:
                raise ChannelClosed(str(error)) from None
            if count == 0:
                raise ChannelClosed("the other end closed the channel")
            done += count
        return bytes(data)

    def close(self) -> None:
        self._sock.close()


class AsyncChannel:
    """The same frames from asyncio."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, sock: socket.socket) -> AsyncChannel:
        return cls(*await asyncio.open_unix_connection(sock=sock, limit=1 << 22))

    def send(self, message: Any) -> None:
        """
        Never waits: what a rank is sent is small, and a rank that reads nothing is found by its
        missing progress.
        """
        if not self._writer.is_closing():
            self._writer.write(pack(message))

    async def receive(self) -> Any:
        try:
            length = checked_length(await self._reader.readexactly(HEADER.size))
            return unpack(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, OSError) as error:
            raise ChannelClosed(str(error)) from None

    def close(self) -> None:
        self._writer.close()
