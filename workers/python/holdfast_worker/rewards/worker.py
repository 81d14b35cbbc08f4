"""The `reward` role: scores samples with a function of the user, in processes of their own."""

from __future__ import annotations

import os
from typing import Any

from holdfast_worker.operation import OperationIO, RankContext
from holdfast_worker.rewards.pool import RewardPool

DEFAULT_PROCESSES_MAX = 4


class Worker:
    """`spec`: {processes?: int}."""

    def __init__(self, context: RankContext) -> None:
        self._processes: int = context.spec.get("processes") or min(DEFAULT_PROCESSES_MAX, os.cpu_count() or 1)
        self._pool = RewardPool(self._processes)
        self.operations = {"score": self.score}

    def boot(self) -> dict[str, Any]:
        return {"device": "cpu", "processes": self._processes}

    def score(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        """args {function, items: [{id, prompt, completion, row, tokens?}], timeout_ms} ->
        {results: [{id, outcome, score, metrics, error, ms}]}, outcome of ok | timeout | error | bad_return | crash."""
        total = len(args["items"])

        def between(done: int) -> None:
            io.check_cancelled()
            io.progress("scoring", done, total)

        results = self._pool.score(args["function"], args["items"], timeout_ms=args["timeout_ms"], between=between)
        return {"results": results}

    def close(self) -> None:
        self._pool.close()
