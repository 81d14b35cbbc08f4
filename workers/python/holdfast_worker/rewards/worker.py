"""The `reward` role: scores samples with a user's function, in separate processes, or with a reward
model.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast_worker.operation import OperationIO, RankContext
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.reward_code import RewardCode
from holdfast_worker.wire_types import RewardSpec


class Worker:
    """Its spec is a `RewardSpec`."""

    def __init__(self, context: RankContext) -> None:
        self._processes = RewardSpec.of(context.spec).processes
        self._pools: dict[RewardCode, RewardPool] = {}
        self._models: dict[str, Any] = {}  # Reward models by their settings, each read once.
        self.operations = {"score": self.score}

    def boot(self) -> dict[str, Any]:
        return {"device": "cpu", "processes": self._processes}

    def score(self, args: dict[str, Any], io: OperationIO) -> dict[str, Any]:
        """args {function, process, shared, items: [{id, completion, tokens?}], timeout_ms}, or
        {model: settings, shared, items: [{id, completion, token_ids?}]} ->
        {results: [{id, outcome, score, metrics, error, ms}]}, outcome of ok | none | timeout | error | bad_return |
        crash | bad_answer; none: nothing to grade by. `process`: RewardCode's fields beside the function. `shared`:
        what all items have in common, their {prompt, row}, so that a long row travels once."""
        shared = io.read_given(args["shared"])
        items = [{**shared, **item} for item in args["items"]]
        total = len(args["items"])

        def between(done: int) -> None:
            io.check_cancelled()
            io.progress("scoring", done, total)

        if "model" in args:
            return {"results": self._model(args["model"]).score(items, between)}
        pool = self._pool(RewardCode.of(args["function"], args["process"]))
        return {"results": pool.score(items, timeout_ms=args["timeout_ms"], between=between)}

    def _pool(self, code: RewardCode) -> RewardPool:
        """Each function has separate processes: one cannot harm another's."""
        if code not in self._pools:
            self._pools[code] = RewardPool(code, self._processes)
        return self._pools[code]

    def _model(self, settings: dict[str, Any]) -> Any:
        from holdfast_worker.rewards.reward_model import RewardModel

        key = json.dumps(settings, sort_keys=True)
        if key not in self._models:
            self._models[key] = RewardModel(settings)
        return self._models[key]

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
