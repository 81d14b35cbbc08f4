"""
Rewards in Python: a function takes what it names of `prompt`, `completion`, `row` and `tokens`
(None in `reward test`).

It returns a number, or a dict with `score` and other numbers. A wrong answer is 0; an exception
says that the row is broken, and is counted as a failed sample, never as a score.

    deno task rl reward test examples/my_reward.py:digits_in_place --data examples/sorting.jsonl
"""

from __future__ import annotations

from typing import Any


def digits_in_place(completion: str, row: dict[str, Any]) -> float:
    """The share of the answer's characters that stand where they belong, from 0 to 1."""
    answer = row["answer"]
    right = sum(given == wanted for given, wanted in zip(completion.strip(), answer))
    return right / max(len(answer), len(completion.strip()))


async def graded(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
    """Awaited if it is a coroutine, e.g. one that asks a server."""
    return {"score": digits_in_place(completion, row), "characters": len(completion)}
