"""Imports rewards before a run starts, as their processes would: `python -m
holdfast_worker.rewards.check`.

Reads [{function, process, style, settings}] as JSON and writes for each {needs, style}, the columns
of a row that it needs and how it is called, or {error} with the user's frames if it cannot be
imported.
"""

from __future__ import annotations

import json
import sys

from holdfast_worker.operation import UserCodeError
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.reward_code import RewardCode
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import RewardProcess


def main() -> None:
    found: list[dict[str, object]] = []
    for reward in json.load(sys.stdin):
        settings = reward["settings"]
        code = RewardCode.of(
            reward["function"],
            decode(RewardProcess, reward["process"]),
            style=reward["style"],
            settings=None if settings is None else json.dumps(settings),
        )
        pool = RewardPool(code, 1)
        try:
            loaded = pool.load()
            found.append({"needs": loaded["needs"], "style": loaded["style"]})
        except UserCodeError as error:
            found.append({"error": str(error)})
        finally:
            pool.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
