"""Operations of a trainer on an algorithm's file. They need no model and change nothing."""

from __future__ import annotations

import json

from holdfast_worker.algorithm.algorithm import Algorithm
from holdfast_worker.algorithm.credit import assign, read_round
from holdfast_worker.algorithm.describe import describe
from holdfast_worker.operation import OperationIO
from holdfast_worker.wire.answers import TrainerCreditAnswer, TrainerOpenAlgorithmAnswer
from holdfast_worker.wire.types import TrainerCredit, TrainerOpenAlgorithm

ALGORITHMS_MAX = 4
opened: dict[
    str, Algorithm
] = {}  # By the sha256 of the recorded text: a fork's parent may have another.


def open_algorithm(args: TrainerOpenAlgorithm, io: OperationIO) -> TrainerOpenAlgorithmAnswer:
    """Tries everything in a file and reports what it reads."""
    return describe(json.loads(io.read_artifact(args.algorithm)))


def credit(args: TrainerCredit, io: OperationIO) -> TrainerCreditAnswer:
    """Blob 0: JSON of what the file's `credit` assigns to a round."""
    name = args.algorithm.sha256
    if name not in opened:
        if len(opened) >= ALGORITHMS_MAX:
            opened.clear()
        opened[name] = Algorithm(json.loads(io.read_artifact(args.algorithm)))
    round_ = read_round(json.loads(io.read_artifact(args.round)))
    io.blob(json.dumps(assign(opened[name], round_)).encode())
    return {"sequences": len(round_)}
