import asyncio
import socket
import threading

import pytest

from holdfast_worker.rank.channel import (
    FRAME_MAX,
    HEADER,
    AsyncChannel,
    Channel,
    ChannelClosed,
    checked_length,
    pack,
)


def pair() -> tuple[Channel, Channel]:
    a, b = socket.socketpair()
    return Channel(a), Channel(b)


def test_channel_gives_back_what_was_sent_bytes_stay_bytes_and_text_stays_text() -> None:
    a, b = pair()
    message = {
        "type": "blob",
        "data": b"\x00\xff",
        "text": "ü",
        "n": [1, -2, 2**53, 0.1, None, True],
    }
    a.send(message)
    assert b.receive() == message


def test_channel_keeps_frames_of_several_threads_whole() -> None:
    a, b = pair()
    big = b"x" * 300_000  # More than a socket buffer: sendall has to wait in the middle of a frame.

    def send(number: int) -> None:
        for _ in range(5):
            a.send({"from": number, "data": big})

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    received = [b.receive() for _ in range(20)]
    for thread in threads:
        thread.join()
    assert sorted(item["from"] for item in received) == sorted([0, 1, 2, 3] * 5)
    assert all(item["data"] == big for item in received)


def test_channel_receive_raises_channel_closed_at_the_end_and_in_the_middle_of_a_frame() -> None:
    a, b = pair()
    a.close()
    with pytest.raises(ChannelClosed):
        b.receive()
    raw, other = socket.socketpair()
    raw.sendall(pack({"a": 1})[:-1])
    raw.close()
    with pytest.raises(ChannelClosed):
        Channel(other).receive()


def test_channel_send_raises_channel_closed_when_nobody_reads() -> None:
    a, b = pair()
    b.close()
    with pytest.raises(ChannelClosed):
        for _ in range(10):
            a.send({"data": b"x" * 100_000})


def test_checked_length_refuses_a_length_that_only_a_broken_stream_has() -> None:
    assert checked_length(HEADER.pack(FRAME_MAX)) == FRAME_MAX
    with pytest.raises(ChannelClosed, match="stream is broken"):
        checked_length(HEADER.pack(FRAME_MAX + 1))


def test_async_channel_speaks_the_same_frames() -> None:
    async def talk() -> None:
        ours, theirs = socket.socketpair()
        channel, other = await AsyncChannel.open(ours), Channel(theirs)
        echo = threading.Thread(target=lambda: other.send(other.receive()))
        echo.start()
        channel.send({"data": b"y" * 1_000_000})
        assert await channel.receive() == {"data": b"y" * 1_000_000}
        echo.join()
        other.close()
        with pytest.raises(ChannelClosed):
            await channel.receive()
        channel.close()

    asyncio.run(talk())
