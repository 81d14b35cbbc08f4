"""
One process of `deno task bench packing`: supervised steps by the trainer's own worker, on padded
and on packed rows.

python supervised_rows.py JSON, with {rows, tokens_max, repeats, loss: expressions, optimizer,
model: directory, artifacts: directory}; prints one JSON line. Steps alternate between both, from
the same version, so that whatever else the machine does meets both alike.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import sys
import time
from pathlib import Path
from typing import Any

from holdfast_worker.operation import OperationIO, RankContext
from holdfast_worker.trainer.worker import Worker


def artifact(directory: str, value: Any) -> dict[str, Any]:
    data = json.dumps(value).encode()
    name = hashlib.sha256(data).hexdigest()
    path = Path(directory) / name[:2] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return {"sha256": name, "bytes": len(data)}


def rows_of(count: int) -> list[dict[str, Any]]:
    """
    Completions of log-normal length, as instruction data has them: half below 60 characters, a few
    near 400.
    """
    lengths = random.Random(7)
    sizes = [min(400, max(8, round(math.exp(lengths.gauss(4.1, 0.9))))) for _ in range(count)]
    return [
        {
            "row_id": str(place),
            "prompt": f"row {place}:",
            "completion": "ab cd " * (size // 6 + 1),
            "columns": {},
        }
        for place, size in enumerate(sizes)
    ]


def main() -> None:
    work = json.loads(sys.argv[1])
    context = {"role": "trainer", "group": "trainer", "generation": 1, "rank": 0, "world_size": 1}
    worker = Worker(RankContext(**context, spec=work["spec"], artifacts_dir=work["artifacts"]))
    worker.boot()

    def call(op: str, **args: Any) -> dict[str, Any]:
        return worker.operations[op](args, OperationIO.alone(work["artifacts"]))

    call("create_model", recipe="tiny_qwen", seed=1, dir=work["model"])
    call(
        "load",
        version="v0",
        model_path=work["model"],
        optimizer=work["optimizer"],
        checkpoint=None,
        model_digest=None,
    )
    rows = rows_of(work["rows"])
    updates = [list(range(len(rows)))]
    batch = {"kind": "supervised", "rows": rows, "temperature": 1, "coef": {}, "updates": updates}
    refs = {
        "batch": artifact(work["artifacts"], batch),
        "loss": artifact(work["artifacts"], work["loss"]),
    }
    seconds: dict[bool, list[float]] = {False: [], True: []}
    steps: dict[bool, dict[str, Any]] = {}
    for repeat in range(work["repeats"] + 1):  # The first of each warms up.
        for packing in (False, True):
            version = worker.held
            how = {
                "optimizer": work["optimizer"],
                "micro_batch_tokens_max": work["tokens_max"],
                "packing": packing,
            }
            how |= {
                "logits_chunk_tokens": work["spec"]["logits_chunk_tokens"],
                "mismatch": None,
                "non_finite_max": None,
            }
            started = time.perf_counter()
            answer = call("train", **{"from": version}, to=f"{version}+", **refs, **how)
            if repeat:
                seconds[packing].append(time.perf_counter() - started)
            steps[packing] = answer["steps"][0]
    median = {packing: sorted(times)[len(times) // 2] for packing, times in seconds.items()}
    lengths = [step["n_tokens"] for step in steps.values()]
    assert lengths[0] == lengths[1]
    measurement = {
        "trained_tokens": lengths[0],
        "packed_s": median[True],
        "padded_s": median[False],
        "packed_micro_batches": steps[True]["micro_batches"],
        "padded_micro_batches": steps[False]["micro_batches"],
    }
    print(json.dumps(measurement))


main()
