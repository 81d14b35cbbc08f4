"""
A reward function tried alone, as the pool would run it, or a reward model.

`python -m holdfast_worker.rewards.try_function path.py:fn --process JSON [--timeout-ms N]`, or with
a DIRECTORY alone, reads items as JSON lines {id, prompt, completion, row, tokens?} and writes one
result with its time for each.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from holdfast_worker.operation import BadDataError, UserCodeError
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.reward_code import RewardCode
from holdfast_worker.wire_types import RewardModelSettings


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m holdfast_worker.rewards.try_function")
    parser.add_argument("function", help="path.py:function, or a reward model's directory")
    parser.add_argument(
        "--process", type=json.loads, help="what its process may use, as JSON: RewardCode's fields"
    )
    parser.add_argument("--timeout-ms", type=float, default=10_000)
    arguments = parser.parse_args()
    model = pool = None
    try:
        if Path(arguments.function).is_dir():
            model = _model(arguments.function)
        else:
            pool = RewardPool(RewardCode.of(arguments.function, arguments.process), 1)
        for number, line in enumerate(sys.stdin, 1):
            if not line.strip():
                continue
            item = {"id": str(number), **json.loads(line)}
            for result in (
                model.score([item])
                if model
                else pool.score([item], timeout_ms=arguments.timeout_ms)
            ):
                print(json.dumps(result), flush=True)
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


def _model(path: str) -> Any:
    from holdfast_worker.rewards.reward_model import RewardModel

    settings: RewardModelSettings = {
        "path": path,
        "dtype": "float32",
        "device": "cpu",
        "threads": 1,
        "template_arguments": {},
        "turn_end": "template",
        "batch_tokens_max": 1,
    }
    return RewardModel(settings)


if __name__ == "__main__":
    sys.exit(main())
