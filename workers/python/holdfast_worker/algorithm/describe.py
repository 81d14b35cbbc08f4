"""An algorithm file's description for the engine, after trying all of it on synthetic data."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from holdfast_worker.algorithm.algorithm import Algorithm
from holdfast_worker.algorithm.credit import group_min, needs_of
from holdfast_worker.algorithm.program import PythonProgram
from holdfast_worker.algorithm.source import AlgorithmError
from holdfast_worker.wire.answers import AlgorithmDescription


def describe(recorded: Mapping[str, Any]) -> AlgorithmDescription:
    """
    {settings, inputs, metrics, needs, group_min, coef, pairs, mismatched, live_statistics,
    value_inputs}: the settings with their defaults, what the loss reads, what credit reads (None:
    the file has no credit), what the value loss reads (None: it has none).
    """
    algorithm = Algorithm(recorded)
    loss = PythonProgram(algorithm)
    code = algorithm.code
    value_loss = PythonProgram(algorithm, "value_loss") if code.has("value_loss") else None
    return {
        "settings": algorithm.settings,
        "inputs": sorted(loss.read),
        "metrics": loss.metrics,
        "pairs": loss.has_pairs,
        "mismatched": bool(code.constant("MISMATCHED", False)),
        "live_statistics": bool(loss.statistics_live),
        "value_inputs": None if value_loss is None else sorted(value_loss.read),
        "needs": needs_of(algorithm) if code.has("credit") else None,
        "group_min": group_min(algorithm),
        "coef": algorithm.first_coef(),
    }


def main() -> int:
    """
    `python -m holdfast_worker.algorithm.describe`: {file, source, settings} on stdin, the
    description on stdout.
    """
    try:
        print(json.dumps(describe(json.load(sys.stdin))))
    except AlgorithmError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
