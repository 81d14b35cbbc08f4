"""
A reward function tried alone, as the pool would run it, or a reward model.

`python -m holdfast_worker.rewards.try_function path.py:fn --process JSON [--style NAME]
[--settings JSON] [--timeout-ms N]`, or with a reward model's DIRECTORY and its settings, reads
`FunctionSample`s as JSON lines, each line one or a list of those of one prompt, and writes one
result with its time for each. Of a function, the first line says how it is called: {style, unit,
why}, and the last one what a call leaves behind: {left}, a sentence or null.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from holdfast_worker.operation import BadDataError, UserCodeError
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.reward_code import RewardCode
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import RewardModelSettings, RewardProcess

if TYPE_CHECKING:
    from holdfast_worker.rewards.reward_model import RewardModel


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m holdfast_worker.rewards.try_function")
    parser.add_argument("function", help="path.py:function, or a reward model's directory")
    parser.add_argument(
        "--process", type=json.loads, help="what its process may use, as JSON: RewardCode's fields"
    )
    parser.add_argument("--style", help="how it is called; absent: as its signature says")
    parser.add_argument("--settings", help="JSON, from which it makes the function; a model's")
    parser.add_argument("--timeout-ms", type=float, default=10_000)
    arguments = parser.parse_args()
    pool: RewardPool | None = None
    number = 0
    try:
        if Path(arguments.function).is_dir():
            score = _model(arguments.function, json.loads(arguments.settings or "{}")).score
        else:
            code = RewardCode.of(
                arguments.function,
                decode(RewardProcess, arguments.process),
                style=arguments.style,
                settings=arguments.settings,
            )
            pool = RewardPool(code, 1)
            loaded = pool.load()
            print(json.dumps({name: loaded[name] for name in ("style", "unit", "why")}))
            score = partial(pool.score, timeout_ms=arguments.timeout_ms)
        for number, line in enumerate(sys.stdin, 1):
            if not line.strip():
                continue
            message: Any = json.loads(line)
            items: Any = [
                {"id": str(number), **item}
                for item in (cast("list[Any]", message) if isinstance(message, list) else [message])
            ]
            for result in score(items):
                print(json.dumps(result), flush=True)
        if pool:
            print(json.dumps({"leftover": pool.left_behind}))
    except (UserCodeError, BadDataError) as error:
        print(error, file=sys.stderr)
        return 2
    except (ValueError, TypeError) as error:
        print(f"Cannot read line {number} of the input as a JSON object: {error}", file=sys.stderr)
        return 2
    finally:
        if pool:
            pool.close()
    return 0


def _model(path: str, more: Mapping[str, Any]) -> RewardModel:
    from holdfast_worker.rewards.reward_model import RewardModel

    usual: dict[str, object] = {
        "path": path,
        "dtype": "float32",
        "device": "cpu",
        "threads": 1,
        "template_arguments": {},
        "turn_end": "template",
        "batch_tokens_max": 1,
    }
    return RewardModel(decode(RewardModelSettings, {**usual, **more}))


if __name__ == "__main__":
    sys.exit(main())
