"""Hostile rewards that take longer than they may."""

from __future__ import annotations

import asyncio
import time
from typing import NoReturn

from hostile_scores import OWN, Row


def hang(row: Row) -> NoReturn:
    while True:
        pass


def sleep_long(row: Row) -> None:
    time.sleep(1000)


class HangsAtItsEnd:
    def __del__(self) -> None:
        hang({})


def hang_in_finalizer(row: Row) -> float:
    kept = HangsAtItsEnd()
    return OWN if kept else 0.0


class HangsAsText(Exception):
    def __str__(self) -> str:  # noqa: PLE0307 (It never returns.)
        hang({})


def hang_in_message(row: Row) -> NoReturn:
    raise HangsAsText


class HangsAsNumber(float):
    def __float__(self) -> float:
        hang({})


def hang_in_number(row: Row) -> float:
    return HangsAsNumber()


async def hang_async(row: Row) -> None:
    await asyncio.Event().wait()


async def task_left(row: Row) -> float:
    async def spoil() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            asyncio.get_running_loop().stop()

    asyncio.get_running_loop().create_task(asyncio.sleep(1000))
    return OWN


async def task_that_stays(row: Row) -> float:
    async def stay() -> None:
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                pass

    asyncio.get_running_loop().create_task(stay())
    await asyncio.sleep(0)
    return OWN


async def loop_closed(row: Row) -> float:
    loop = asyncio.get_running_loop()
    loop.call_soon(loop.stop)
    await asyncio.sleep(1000)
    return OWN
