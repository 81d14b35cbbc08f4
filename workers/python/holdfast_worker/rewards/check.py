"""Imports rewards before a run starts, as their processes would: `python -m
holdfast_worker.rewards.check`.

Reads [{function, process}] as JSON and writes for each {needs}, the columns of a row that it takes
by name, or {error} with the user's frames if it cannot be imported.
"""

from __future__ import annotations

import json
import sys

from holdfast_worker.operation import UserCodeError
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.reward_code import RewardCode


def main() -> None:
    found = []
    for reward in json.load(sys.stdin):
        pool = RewardPool(RewardCode.of(reward["function"], reward["process"]), 1)
        try:
            found.append({"needs": pool.load()["needs"]})
        except UserCodeError as error:
            found.append({"error": str(error)})
        finally:
            pool.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
