"""Runs trainer workers without an agent: in this process, or as one plain process per rank."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from holdfast_worker.operation import OperationIO, RankContext
from holdfast_worker.trainer.batch import read_batch
from holdfast_worker.wire.types import Batch

PACKAGE_ROOT = Path(__file__).parents[3] / "workers" / "python"
OPTIMIZER: dict[str, Any] = {
    "name": "adamw",
    "lr": 1e-3,
    "betas": [0.9, 0.999],
    "eps": 1e-8,
    "weight_decay": 0.01,
    "clip_grad_norm": 1.0,
    "schedule": {
        "name": "linear",
        "warmup_steps": 2,
        "stable_steps": 0,
        "total_steps": 20,
        "min_ratio": 0.1,
    },
}
SPEC: dict[str, Any] = {
    "engine": "torch",
    "zero": 0,
    "dtype": "float32",
    "ema_decay": None,
    "gradient_checkpointing": False,
    "threads": 1,
    "device": os.environ.get("HOLDFAST_TEST_DEVICE", "cpu"),
    "seed": 1,
    "head": None,
    "offload": {"optimizer": False, "parameters": False},
    "logits_chunk_tokens": 4096,
    "packing": False,
    "dropout": 0,
    "lora": None,
    "attn_implementation": None,
    "trust_remote_code": False,
    "open_with_missing": False,
    "open_with_unexpected": False,
}
# Arguments that most tests do not vary, by operation: what comes off the line is whole.
CUT: dict[str, Any] = {"logits_chunk_tokens": 4096, "packing": False}
USUAL: dict[str, dict[str, Any]] = {
    "load": {"model_digest": None},
    "measure_rows": {"chat": None},
    "train": {**CUT, "mismatch": None, "non_finite_max": None},
    "score": {**CUT, "reference_path": None, "reference_digest": None, "reference_offload": False},
    "evaluate": CUT,
    "publish": {"form": None, "average": False},
}

# -logp summed over the step and divided by n_tokens.
SUPERVISED_LOSS: dict[str, Any] = {
    "version": 1,
    "inputs": ["logp", "n_tokens"],
    "nodes": [
        {"op": "input", "kind": "token", "name": "logp"},
        {"op": "neg", "kind": "token", "args": [0]},
        {"op": "stepSum", "kind": "step", "args": [1]},
        {"op": "input", "kind": "step", "name": "n_tokens"},
        {"op": "div", "kind": "step", "args": [2, 3]},
    ],
    "loss": 4,
    "metrics": {},
}
# -exp(logp - old_logp) * advantage, likewise; the mean ratio as a metric.
POLICY_LOSS: dict[str, Any] = {
    "version": 1,
    "inputs": ["advantage", "logp", "n_tokens", "old_logp"],
    "nodes": [
        {"op": "input", "kind": "token", "name": "logp"},
        {"op": "input", "kind": "token", "name": "old_logp"},
        {"op": "sub", "kind": "token", "args": [0, 1]},
        {"op": "exp", "kind": "token", "args": [2]},
        {"op": "input", "kind": "token", "name": "advantage"},
        {"op": "mul", "kind": "token", "args": [3, 4]},
        {"op": "neg", "kind": "token", "args": [5]},
        {"op": "stepSum", "kind": "step", "args": [6]},
        {"op": "input", "kind": "step", "name": "n_tokens"},
        {"op": "div", "kind": "step", "args": [7, 8]},
        {"op": "stepSum", "kind": "step", "args": [3]},
        {"op": "div", "kind": "step", "args": [10, 8]},
    ],
    "loss": 9,
    "metrics": {"policy/ratio": 11},
}


OPTIONAL = ("non_finite_max", "packing", "logits_chunk_tokens", "mismatch")


class Artifacts:
    """A content-addressed directory, as the engine writes it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def put(self, data: bytes) -> dict[str, Any]:
        name = hashlib.sha256(data).hexdigest()
        path = self.directory / name[:2] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return {"sha256": name, "bytes": len(data)}

    def put_json(self, value: Any) -> dict[str, Any]:
        return self.put(json.dumps(value).encode())


def slab(lengths: list[list[int]], *, seed: int = 0, prompt: int = 3) -> bytes:
    """
    A GeneratedSlab of random tokens: `lengths[group][sample]`. The first `prompt` are a group's
    own, and not trained.
    """
    random = np.random.default_rng(seed)
    groups = []
    for draw, samples in enumerate(lengths):
        trajectories = []
        head = random.integers(6, 100, prompt)
        for sample, length in enumerate(samples):
            mask = (np.arange(length) >= prompt).astype(np.uint8)
            trajectories.append(
                {
                    "sample": sample,
                    "tokens": np.concatenate([head, random.integers(6, 100, length)])[:length]
                    .astype("<i4")
                    .tobytes(),
                    "action_mask": mask.tobytes(),
                    "behaviour_logp": (mask * -random.random(length)).astype("<f4").tobytes(),
                    "versions": [],
                    "stop": "stop",
                    "text": "",
                }
            )
        groups.append(
            {"draw": draw, "row_id": str(draw), "prompt_text": "", "trajectories": trajectories}
        )
    return msgpack.packb({"slab": "s", "version": "v", "sampling": {}, "groups": groups})


def trajectory_batch(
    artifacts: Artifacts, lengths: list[list[int]], **fields: Any
) -> dict[str, Any]:
    """
    A Batch of kind trajectories over one slab, with a random advantage per sequence and one update.
    """
    seed = fields.pop("seed", 0)
    ref = artifacts.put(slab(lengths, seed=seed, prompt=fields.pop("prompt", 3)))
    count = sum(map(len, lengths))
    advantage = np.random.default_rng(seed + 100).normal(size=count).tolist()
    groups = [
        {"draw": place, "slab": ref, "index": place, "samples": list(range(len(samples)))}
        for place, samples in enumerate(lengths)
    ]
    return {
        "kind": "trajectories",
        "groups": groups,
        "columns": {"advantage": {"kind": "sequence", "values": advantage}},
        "staleness": [0] * count,
        "temperature": 1,
        "coef": {},
        "updates": [list(range(len(groups)))],
        **fields,
    }


def read_by_trainer(batch: dict[str, Any]) -> Batch:
    """A batch as a trainer has it."""
    return read_batch(json.dumps(batch).encode())


def start_worker(artifacts: Artifacts, **spec: Any) -> Any:
    """
    A booted one-rank worker in this process. Its home is the directory that holds the artifacts.
    """
    from holdfast_worker.trainer.worker import Worker

    worker = Worker(
        RankContext(
            role="trainer",
            group="trainer",
            generation=1,
            rank=0,
            world_size=1,
            spec={**SPEC, **spec},
            artifacts_dir=str(artifacts.directory),
            home=str(artifacts.directory.parent),
        )
    )
    worker.boot()
    return worker


class Trainer:
    """
    The operations of a worker in this process, with the arguments that tests do not vary filled in.
    """

    def __init__(self, directory: Path, **spec: Any) -> None:
        self.directory = directory
        self.artifacts = Artifacts(directory / "artifacts")
        self.worker = start_worker(self.artifacts, **spec)

    def call(self, op: str, **args: Any) -> dict[str, Any]:
        self.io = io_of(self.artifacts)
        return self.worker.operations[op]({**USUAL.get(op, {}), **args}, self.io)

    def create(self, recipe: str = "tiny_qwen") -> str:
        return self.call("create_model", recipe=recipe, seed=1, dir=str(self.directory / "model"))[
            "dir"
        ]

    def load(
        self, version: str = "v0", checkpoint: dict[str, Any] | None = None, **optimizer: Any
    ) -> dict[str, Any]:
        model = str(self.directory / "model")
        self.optimizer = {**OPTIMIZER, **optimizer}
        return self.call(
            "load",
            version=version,
            model_path=model,
            optimizer=self.optimizer,
            checkpoint=checkpoint,
        )

    def train(
        self, batch: dict[str, Any], *, between: tuple[str, str], **options: Any
    ) -> dict[str, Any]:
        return self.call(
            "train",
            **{"from": between[0]},
            to=between[1],
            batch=self.artifacts.put_json(batch),
            loss=self.artifacts.put_json(options.get("loss", POLICY_LOSS)),
            optimizer={**self.optimizer, **options.get("optimizer", {})},
            micro_batch_tokens_max=options.get("tokens_max", 64),
            **{name: options[name] for name in OPTIONAL if name in options},
        )


def io_of(artifacts: Artifacts) -> OperationIO:
    return OperationIO.alone(str(artifacts.directory))


def run_ranks(
    tmp: Path, script: list[dict[str, Any]], *, artifacts: Artifacts, ranks: int, **spec: Any
) -> list[list[Any]]:
    """
    Runs `script` (a list of {op, args}) on a group of real processes and returns every rank's
    answers. An operation that raises answers {"error": its class, "message": its text}.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = {
        "role": "trainer",
        "group": "trainer",
        "generation": 1,
        "world_size": ranks,
        "spec": {**SPEC, "engine": "deepspeed", **spec},
        "artifacts_dir": str(artifacts.directory),
        "home": str(artifacts.directory.parent),
        "master_addr": "127.0.0.1",
        "master_port": port,
    }
    script = [{**task, "args": {**USUAL.get(task["op"], {}), **task["args"]}} for task in script]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), "OMP_NUM_THREADS": "1"}
    processes = []
    for rank in range(ranks):
        job, answer = tmp / f"job_{rank}.json", tmp / f"answer_{rank}.json"
        answer.unlink(missing_ok=True)
        job.write_text(
            json.dumps(
                {"context": {**context, "rank": rank}, "script": script, "answer": str(answer)}
            )
        )
        log = open(tmp / f"rank_{rank}.log", "w")  # noqa: SIM115 (The process writes there.)
        python = deepspeed_python() if context["spec"]["engine"] == "deepspeed" else sys.executable
        command = [python, str(Path(__file__).with_name("trainer_rank.py")), str(job)]
        processes.append(
            subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        )
    try:
        codes = [process.wait(timeout=240) for process in processes]
    finally:
        for process in processes:
            process.kill()
    logs = "\n".join((tmp / f"rank_{rank}.log").read_text()[-3000:] for rank in range(ranks))
    assert codes == [0] * ranks, logs
    return [json.loads((tmp / f"answer_{rank}.json").read_text()) for rank in range(ranks)]


def deepspeed_python() -> str:
    """
    The interpreter that has DeepSpeed. Without one the test fails, or is skipped where only the
    fast tests run.
    """
    python = os.environ.get("HOLDFAST_TEST_DEEPSPEED_PYTHON")
    if python:
        return python
    if os.environ.get("HOLDFAST_FAST") == "1":
        pytest.skip(
            "HOLDFAST_TEST_DEEPSPEED_PYTHON is unset and HOLDFAST_FAST=1: DeepSpeed is not tested"
        )
    pytest.fail(
        "HOLDFAST_TEST_DEEPSPEED_PYTHON is unset: set it to a Python that has the deepspeed requirements"
    )


if __name__ == "__main__":
    sys.exit("Not a program: see trainer_rank.py")
