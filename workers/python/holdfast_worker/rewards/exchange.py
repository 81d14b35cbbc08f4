"""The pool's end of a process's channel: one request and its answer at a time, within one time
limit.

Each request has a nonce which its answer repeats. Anything else comes from an unauthorised writer
(a fork of the user's code), so no byte of the channel can be trusted any more.
"""

from __future__ import annotations

import secrets
import select
import socket
import time
from collections.abc import Mapping
from typing import Literal, NotRequired, TypedDict, cast

from holdfast_worker.json_value import JsonObject, JsonValue
from holdfast_worker.message import Message
from holdfast_worker.rank.channel import HEADER, ChannelClosed, pack, unpack

ANSWER_BYTES_MAX = 16 << 20  # Of a group: a number for each token of each sample.
CHUNK_BYTES = 1 << 16


class FunctionSample(TypedDict):
    """What a function of the user is called for."""

    id: str
    prompt: str  # As it was sampled from: a chat after its template.
    row_prompt: NotRequired[str | list[Message]]  # As the row has it.
    prompt_ids: NotRequired[list[int]]
    completion: str
    columns: JsonObject  # Of the row, as the file has them.
    answer: NotRequired[str]  # The row's reference answer.
    tokens: NotRequired[int]
    token_ids: NotRequired[list[int]]  # What was sampled, the token that ended it too.
    stop: NotRequired[str]  # Why it ended.


class Loaded(TypedDict):
    """The function is imported. `needs`: columns that it takes of a row. `style`: how it is called,
    `why`: by what that was recognised, `unit`: what one call scores, `code`: `code_digest`.
    """

    error: None
    needs: list[str]
    isolated: bool
    style: str
    unit: Literal["sample", "group"]
    why: str
    code: str


class NotLoaded(TypedDict):
    """`error`: why it cannot be imported, with the user's frames. `is_whole`: it is a sentence that
    says all.
    """

    error: str
    is_whole: NotRequired[bool]


class SampleAnswer(TypedDict):
    outcome: Literal["ok", "none", "timeout", "error", "bad_return"]
    score: float | None
    metrics: dict[str, float]
    error: str | None
    token_scores: NotRequired[list[float]]


class CallAnswer(TypedDict):
    """`whole`: why a call has no score for any of its samples; None: `samples` has one of each.
    `leftover`: the process is of no more use, because the call left this behind in it.
    """

    whole: SampleAnswer | None
    samples: list[SampleAnswer]
    leftover: NotRequired[str]


class Silent(Exception):
    """No complete answer in time."""


class BadAnswer(Exception):
    """The received bytes are not the answer to the request."""


class Exchange:
    """Over one end of a socket pair. After any exception it is unusable."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._poll = select.poll()

    def is_idle(self) -> bool:
        """Nothing unrequested was received, and the other end exists."""
        self._poll.register(self._sock, select.POLLIN)
        return not self._poll.poll(0)

    def ask(self, message: Mapping[str, object], timeout_s: float) -> JsonObject:
        """
        The answer as it came, without its nonce. `timeout_s` is for all of it, from the first byte
        of the request to the last of the answer. Raises Silent, BadAnswer, ChannelClosed.
        """
        deadline = time.monotonic() + timeout_s
        nonce = secrets.token_hex(16)
        self._send(pack({**message, "nonce": nonce}), deadline)
        (length,) = HEADER.unpack(self._receive(HEADER.size, deadline))
        if length > ANSWER_BYTES_MAX:
            raise BadAnswer(f"it claims to have {length} bytes, more than {ANSWER_BYTES_MAX}")
        answer = _unpacked(self._receive(length, deadline))
        if answer.pop("nonce", None) != nonce:
            raise BadAnswer("it is not the answer to this call")
        if not self.is_idle() and self._sock.recv(
            1, socket.MSG_PEEK
        ):  # Nothing: it has ended since.
            raise BadAnswer("more was received than the answer")
        return answer

    def close(self) -> None:
        self._sock.close()

    def _send(self, frame: bytes, deadline: float) -> None:
        rest = memoryview(frame)
        while rest:
            self._wait(select.POLLOUT, deadline)
            try:
                rest = rest[self._sock.send(rest) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from None

    def _receive(self, length: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < length:
            self._wait(select.POLLIN, deadline)
            try:
                part = self._sock.recv(min(CHUNK_BYTES, length - len(data)))
            except BlockingIOError:
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from None
            if not part:
                raise ChannelClosed("the other end closed the channel")
            data += part
        return bytes(data)

    def _wait(self, event: int, deadline: float) -> None:
        remaining_s = deadline - time.monotonic()
        self._poll.register(self._sock, event)
        if remaining_s <= 0 or not self._poll.poll(remaining_s * 1000):
            raise Silent


def _unpacked(body: bytes) -> dict[str, JsonValue]:
    try:
        answer = unpack(body)
    except Exception:  # msgpack raises many kinds, ValueError and UnicodeDecodeError among them.
        raise BadAnswer("it cannot be read") from None
    if not isinstance(answer, dict):
        raise BadAnswer("it is no message")
    return cast("dict[str, JsonValue]", answer)
