"""Algorithm files for tests, opened and described."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast_worker.algorithm import recorded_program

FILES = Path(__file__).parents[2] / "algs" / "python"
P3O, KTO, REWARD_MODEL = (
    (FILES / f"{name}.py").read_text() for name in ("p3o", "kto", "reward_model")
)
PLAIN = """
def credit(round, c):
    return {"advantage": round.reward - round.reward.mean()}

def loss(x, c):
    return {"loss": ("token_mean", -x.advantage * x.logp)}
"""


def recorded(source: str, **settings: Any) -> dict[str, Any]:
    return {"file": "my.py", "source": source, "settings": settings}


def program(source: str, old_is_current: bool = False, **settings: Any) -> Any:
    content = {"version": 1, "python": {**recorded(source, **settings), "part": "loss"}}
    return recorded_program(content, old_is_current)


def loss_of(expression: str) -> str:
    return f"import torch\ndef loss(x, c, s):\n    return {expression}\n"
