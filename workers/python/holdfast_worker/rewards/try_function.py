"""A reward function tried alone, as the pool would run it.

`python -m holdfast_worker.rewards.try_function path.py:fn [--timeout-ms N]` reads items as JSON lines {id, prompt,
completion, row, tokens?} and writes one result with its time for each.
"""

from __future__ import annotations

import argparse
import json
import sys

from holdfast_worker.operation import UserCodeError
from holdfast_worker.rewards.pool import RewardPool


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m holdfast_worker.rewards.try_function")
    parser.add_argument("function", help="path.py:function")
    parser.add_argument("--timeout-ms", type=float, default=10_000)
    arguments = parser.parse_args()
    pool = RewardPool(1)
    try:
        for number, line in enumerate(sys.stdin, 1):
            if not line.strip():
                continue
            item = {"id": str(number), **json.loads(line)}
            for result in pool.score(arguments.function, [item], timeout_ms=arguments.timeout_ms):
                print(json.dumps(result), flush=True)
    except UserCodeError as error:
        print(error, file=sys.stderr)
        return 2
    except (ValueError, TypeError) as error:
        print(f"Cannot read line {number} of the input as a JSON object: {error}", file=sys.stderr)
        return 2
    finally:
        pool.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
