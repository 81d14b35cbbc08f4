"""The `reward` role: scores samples with a user's function, in separate processes, or with a reward
model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from holdfast_worker.operation import OperationIO, RankContext
from holdfast_worker.rewards.exchange import FunctionSample
from holdfast_worker.rewards.pool import RewardPool
from holdfast_worker.rewards.reward_code import RewardCode
from holdfast_worker.wire.answers import (
    RewardIdentifyAnswer,
    RewardScoreAnswer,
    RewardScoreByModelAnswer,
)
from holdfast_worker.wire.operation import read_arguments, typed
from holdfast_worker.wire.received import decode, plain
from holdfast_worker.wire.types import (
    RewardIdentify,
    RewardModelSettings,
    RewardScore,
    RewardScoreByModel,
    RewardSpec,
)

if TYPE_CHECKING:
    from holdfast_worker.rewards.reward_model import ModelSample, RewardModel


class Worker:
    """Its spec is a `RewardSpec`."""

    def __init__(self, context: RankContext) -> None:
        self._processes = decode(RewardSpec, context.spec).processes
        self._pools: dict[RewardCode, RewardPool] = {}
        self._models: dict[str, RewardModel] = {}  # By their settings, each read once.
        self.operations = {
            "score": typed(RewardScore, self.score),
            "identify": typed(RewardIdentify, self.identify),
            "score_by_model": typed(RewardScoreByModel, self.score_by_model),
        }

    def boot(self) -> Mapping[str, object]:
        return {"device": "cpu", "processes": self._processes}

    def score(self, args: RewardScore, io: OperationIO) -> RewardScoreAnswer:
        """Calls the function for each item."""
        shared = read_arguments(args.shared, io)  # What all samples have in common travels once.
        items = [cast("FunctionSample", {**shared, **plain(item)}) for item in args.items]
        between = telling(io, len(items))
        results = self._pool(args).score(items, timeout_ms=args.timeout_ms, between=between)
        return {"results": results}

    def identify(self, args: RewardIdentify, io: OperationIO) -> RewardIdentifyAnswer:
        """Imports the function, and says what its results can be kept by."""
        loaded = self._pool(args).load(telling(io, 1))
        return {"code": loaded["code"], "unit": loaded["unit"]}

    def score_by_model(self, args: RewardScoreByModel, io: OperationIO) -> RewardScoreByModelAnswer:
        """Asks the model about all items."""
        shared = read_arguments(args.shared, io)
        items = [cast("ModelSample", {**shared, **plain(item)}) for item in args.items]
        return {"results": self._model(args.model).score(items, telling(io, len(items)))}

    def _pool(self, args: RewardScore | RewardIdentify) -> RewardPool:
        """Each function has separate processes: one cannot harm another's."""
        code = RewardCode.of(args.function, args.process, style=args.style, settings=args.settings)
        if code not in self._pools:
            self._pools[code] = RewardPool(code, self._processes)
        return self._pools[code]

    def _model(self, settings: RewardModelSettings) -> RewardModel:
        from holdfast_worker.rewards.reward_model import RewardModel

        key = json.dumps(plain(settings), sort_keys=True)
        if key not in self._models:
            self._models[key] = RewardModel(settings)
        return self._models[key]

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()


def telling(io: OperationIO, total: int) -> Callable[[int], None]:
    """Says how far the work is; ends it once it was cancelled."""

    def between(done: int) -> None:
        io.check_cancelled()
        io.progress("scoring", done, total)

    return between
