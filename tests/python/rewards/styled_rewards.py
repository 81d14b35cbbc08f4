"""Reward functions of other frameworks in `tests/rewards/styles`, and samples that they score."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_engine import PACKAGES
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.reward_code import RewardCode
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import RewardProcess
from reward_files import PROCESS

FILES = Path(__file__).parents[2] / "rewards" / "styles"
CHAT = [{"role": "user", "content": "1 + 1?"}]


def path(name: str) -> str:
    file, _, function = name.partition(":")
    return f"{FILES}/{file}.py:{function}"


def samples(*completions: str, answer: str | None = None, **sample: Any) -> list[dict[str, Any]]:
    """Samples of one prompt; a token for each character."""
    return [
        {
            "id": str(place),
            "prompt": "1 + 1?",
            "row_prompt": "1 + 1?",
            "prompt_ids": [1, 2],
            "completion": text,
            "columns": {},
            **({} if answer is None else {"answer": answer}),
            "tokens": len(text),
            "token_ids": [ord(character) for character in text],
            "stop": "stop",
            **sample,
        }
        for place, text in enumerate(completions)
    ]


def scored(results: list[dict[str, Any]]) -> list[Any]:
    return [one["score"] if one["outcome"] == "ok" else one["outcome"] for one in results]


@pytest.fixture(scope="module")
def score() -> Iterator[Any]:
    """Scores samples in a real pool; a function has one for all tests."""
    pools: dict[tuple[str, str | None], RewardPool] = {}

    def of(
        name: str, given: list[dict[str, Any]], style: str | None = None
    ) -> list[dict[str, Any]]:
        if (name, style) not in pools:
            pools[name, style] = RewardPool(
                RewardCode.of(path(name), decode(RewardProcess, PROCESS), style=style), 1
            )
        return pools[name, style].score(given, timeout_ms=60_000)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(PACKAGES))
        yield of
        for pool in pools.values():
            pool.close()
