"""Ranks as threads of one process, with a gather that meets at a barrier."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def in_ranks(world_size: int, work: Callable[[int, Callable[[Any], list[Any]]], Any]) -> list[Any]:
    """
    `work(rank, gather)` on every rank; its results in rank order. An error on one rank ends all.
    """
    barrier = threading.Barrier(world_size, timeout=60)
    slots: list[Any] = [None] * world_size
    results: list[Any] = [None] * world_size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        def gather(value: Any) -> list[Any]:
            slots[rank] = value
            barrier.wait()
            everyone = list(slots)
            barrier.wait()
            return everyone

        try:
            results[rank] = work(rank, gather)
        except BaseException as error:  # Raised again below, on the caller's thread.
            errors.append(error)
            barrier.abort()

    if world_size == 1:
        return [work(0, lambda value: [value])]
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(world_size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first = [
        error for error in errors if not isinstance(error, threading.BrokenBarrierError)
    ] or errors
    if first:
        raise first[0]
    return results
