"""Agents served by a tiny hub, for the tests of agents."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fake_engine import FakeEngine


def served(tmp_path: Path, test: Callable[[FakeEngine], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with FakeEngine(tmp_path, **options) as engine:
            await test(engine)

    asyncio.run(asyncio.wait_for(run(), 60))


async def exit_code(engine: FakeEngine) -> int:
    return await asyncio.to_thread(engine.agents[-1].wait, 10)


def pids(state: dict[str, Any]) -> list[int]:
    return [rank["pid"] for rank in state["ranks"]]


async def ready_with_children(engine: FakeEngine, **fields: Any) -> list[int]:
    """Starts a group whose ranks have two children each. Returns all their process ids."""
    await engine.start_group(spec={"children": 2}, **fields)
    answer = await engine.call("pids")
    return [pid for output in answer["outputs"] for pid in [output["pid"], *output["children"]]]
