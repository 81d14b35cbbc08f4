"""The pool's end of a channel: one answer to one request, and no byte from anybody else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast_worker.rank.channel import HEADER, ChannelClosed, pack, unpack
from holdfast_worker.rewards.exchange import ANSWER_BYTES_MAX, BadAnswer, Exchange, Silent

Reply = Callable[[dict[str, Any]], bytes]


class Far:
    """The process's end."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._thread: threading.Thread | None = None

    def answer(self, reply: Reply) -> None:
        """Reads one request in a thread and sends what `reply` makes of it, if anything."""

        def work() -> None:
            (length,) = HEADER.unpack(self.read(HEADER.size))
            frame = reply(unpack(self.read(length)))
            if frame:
                self.sock.sendall(frame)

        self._thread = threading.Thread(target=work)
        self._thread.start()

    def read(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            data += self.sock.recv(length - len(data))
        return data

    def close(self) -> None:
        if self._thread is not None:
            self._thread.join()
        self.sock.close()


@pytest.fixture
def ends() -> Iterator[tuple[Exchange, Far]]:
    near, sock = socket.socketpair()
    exchange, far = Exchange(near), Far(sock)
    yield exchange, far
    far.close()
    exchange.close()


def echo(request: dict[str, Any]) -> bytes:
    return pack({"nonce": request["nonce"], "n": request["n"]})


def test_ask_gives_the_answer_without_its_nonce_again_and_again(ends: tuple[Exchange, Far]) -> None:
    exchange, far = ends
    for n in range(3):
        far.answer(echo)
        assert exchange.ask({"n": n}, 10) == {"n": n}
        assert exchange.is_idle()


def test_long_requests_and_answers_arrive_whole(ends: tuple[Exchange, Far]) -> None:
    exchange, far = ends
    text = "é" * 400_000
    far.answer(
        lambda request: pack({**request, "same": request["text"] == text, "text": "x" * 900_000})
    )
    assert exchange.ask({"text": text}, 10) == {"text": "x" * 900_000, "same": True}


def test_every_request_has_a_different_nonce(ends: tuple[Exchange, Far]) -> None:
    exchange, far = ends
    seen = []
    for _ in range(3):
        far.answer(lambda request: (seen.append(request["nonce"]), pack(request))[1])
        exchange.ask({}, 10)
    assert len(set(seen)) == 3


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (lambda request: pack({"score": 1}), "it is not the answer to this call"),
        (lambda request: pack({"nonce": "0" * 32}), "it is not the answer to this call"),
        (lambda request: pack([request["nonce"]]), "it is no message"),
        (lambda request: HEADER.pack(1) + b"\xc1", "it cannot be read"),
        (lambda request: pack(request) + b"x", "more was received than the answer"),
        (
            lambda request: HEADER.pack(ANSWER_BYTES_MAX + 1),
            f"it claims to have {ANSWER_BYTES_MAX + 1} bytes, more than {ANSWER_BYTES_MAX}",
        ),
    ],
)
def test_what_is_not_the_answer_is_refused(
    ends: tuple[Exchange, Far], reply: Reply, message: str
) -> None:
    exchange, far = ends
    far.answer(reply)
    with pytest.raises(BadAnswer) as error:
        exchange.ask({"n": 1}, 10)
    assert str(error.value) == message


def test_an_answer_whose_sender_ends_at_once_counts(ends: tuple[Exchange, Far]) -> None:
    exchange, far = ends

    def last(request: dict[str, Any]) -> bytes:
        far.sock.sendall(echo(request))
        far.sock.shutdown(socket.SHUT_WR)
        return b""

    far.answer(last)
    assert exchange.ask({"n": 1}, 10) == {"n": 1}


def test_no_answer_in_time_is_silence_and_no_time_is_none(ends: tuple[Exchange, Far]) -> None:
    exchange, _ = ends
    with pytest.raises(Silent):
        exchange.ask({}, 0.01)
    with pytest.raises(Silent):
        exchange.ask({}, 0)


def test_an_end_that_is_closed_is_told_apart_from_silence(ends: tuple[Exchange, Far]) -> None:
    exchange, far = ends
    assert exchange.is_idle()
    far.sock.close()
    assert not exchange.is_idle()
    with pytest.raises(ChannelClosed):
        exchange.ask({}, 10)


def test_a_byte_that_nobody_asked_for_is_noticed(ends: tuple[Exchange, Far]) -> None:
    exchange, far = ends
    far.sock.sendall(b"x")
    assert not exchange.is_idle()
