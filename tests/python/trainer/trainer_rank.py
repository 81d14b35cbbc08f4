"""One rank of `trainer_harness.run_ranks`: python trainer_rank.py JOB.json."""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path

from holdfast_worker.operation import OperationIO, RankContext
from holdfast_worker.trainer.worker import Worker


def count_models(args: dict, io: OperationIO) -> dict:
    """Models alive in this process; what only cycles hold is alive too."""
    return {"models": sum(type(thing).__name__ == "Qwen2ForCausalLM" for thing in gc.get_objects())}


def rename(worker: Worker, *, before: str, after: str) -> dict:
    """What the worker holds as `before` is `after` from here on."""
    assert worker.held == before, f"It holds {worker.held}"
    worker.held, worker.trained = after, None
    return {"version": after}


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    worker = Worker(RankContext(**job["context"]))
    worker.operations["count_models"] = count_models
    worker.operations["rename"] = lambda args, io: rename(worker, **args)
    answers = [worker.boot()]
    gc.disable()  # What is freed is freed because the worker asked for it.
    for task in job["script"]:
        io = OperationIO.alone(job["context"]["artifacts_dir"])
        try:
            answer = worker.operations[task["op"]](task["args"], io)
        except Exception as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        answers.append(
            {**answer, "blobs": [blob.hex() for blob in io.blobs]} if io.blobs else answer
        )
    Path(job["answer"]).write_text(json.dumps(answers))


main()
sys.stdout.flush()
os._exit(0)
