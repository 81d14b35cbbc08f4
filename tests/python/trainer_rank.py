"""One rank of `trainer_harness.run_ranks`: python trainer_rank.py JOB.json."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from holdfast_worker.operation import OperationIO, RankContext
from holdfast_worker.trainer.worker import Worker


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    worker = Worker(RankContext(**job["context"]))
    answers = [worker.boot()]
    for task in job["script"]:
        io = OperationIO.alone(job["context"]["artifacts_dir"])
        try:
            answer = worker.operations[task["op"]](task["args"], io)
        except Exception as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        answers.append({**answer, "blobs": [blob.hex() for blob in io.blobs]} if io.blobs else answer)
    Path(job["answer"]).write_text(json.dumps(answers))


main()
sys.stdout.flush()
os._exit(0)
