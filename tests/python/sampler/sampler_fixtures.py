"""Small models, publications and slabs for the sampler's tests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from holdfast_worker import weights
from holdfast_worker.operation import OperationIO, RankContext
from holdfast_worker.sampler.worker import Worker
from holdfast_worker.trainer.model.create_model import create_model
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import Sampling

WEIGHTS_NAME = "model.safetensors"


def make_model(directory: Path, recipe: str = "tiny_qwen", *, seed: int = 1) -> Path:
    """A tiny model whose every tensor (biases and norms too) is away from its initial value."""
    create_model(recipe, seed=seed, directory=str(directory), home=str(directory.parent))
    change_tensors(directory, seed=seed)
    return directory


def change_tensors(directory: Path, *, seed: int, names: set[str] | None = None) -> None:
    """Adds noise to the named tensors (all of them if None)."""
    import torch
    from safetensors.torch import load_file, save_file

    path = directory / WEIGHTS_NAME
    tensors = load_file(path)
    generator = torch.Generator().manual_seed(seed)
    for name in sorted(tensors):
        noise = torch.randn(tensors[name].shape, generator=generator) * 0.1
        if names is None or name in names:
            tensors[name] = (tensors[name] + noise).contiguous()
    save_file(tensors, path, metadata={"format": "pt"})


def publish(directory: Path, version: str) -> dict[str, Any]:
    """The publication that a trainer would answer for this directory."""
    tensors, digest = weights.manifest_of_directory(directory)
    files = weights.files_of_directory(directory)
    return {
        "version": version,
        "dir": str(directory),
        "digest": digest,
        "tensors": tensors,
        "files": files,
    }


def publish_changed(
    source: Path, version: str, *, names: set[str] | None, seed: int
) -> dict[str, Any]:
    """A publication beside `source` with other values in the named tensors."""
    directory = source.with_name(f"{source.name}_{version}")
    shutil.copytree(source, directory)
    change_tensors(directory, seed=seed, names=names)
    return publish(directory, version)


SAMPLING: dict[str, Any] = {
    "temperature": 1,
    "top_p": 1,
    "top_k": -1,
    "min_p": 0,
    "repetition_penalty": 1,
    "tokens_max": 12,
    "stop": [],
    "stop_token_ids": [],
    "ignore_eos": False,
}
SAMPLER_SPEC: dict[str, Any] = {
    "engine": "huggingface",
    "dtype": "float32",
    "threads": 1,
    "device": os.environ.get("HOLDFAST_TEST_DEVICE", "cpu"),
    "max_model_len": None,
    "kv_cache_gib": None,
    "vllm": {},
    "attn_implementation": None,
    "trust_remote_code": False,
    "open_with_missing": False,
    "open_with_unexpected": False,
    "seed": 7,
}


def make_worker(engine: str = "huggingface", **spec: Any) -> Worker:
    """A booted sampler without a model."""
    full = {**SAMPLER_SPEC, "engine": engine, **spec}
    worker = Worker(RankContext("sampler", "sampler/0", 1, 0, 1, full, artifacts_dir=""))
    worker.boot()
    return worker


def load(worker: Worker, model: Path, publication: dict[str, Any]) -> dict[str, Any]:
    arguments = {
        "version": publication["version"],
        "model_path": str(model),
        "publication": publication,
    }
    return worker.operations["load"](arguments, OperationIO.alone())


def slab_arguments(
    version: str, *, draws: int = 6, samples: int = 4, **sampling: Any
) -> dict[str, Any]:
    """Prompts of several lengths, so that rows are padded."""
    rows = [
        {
            "draw": draw,
            "row": {
                "row_id": f"row{draw}",
                "prompt": f"sort {'7' * (draw % 3)}{draw}:",
                "columns": {},
            },
        }
        for draw in range(draws)
    ]
    return {
        "version": version,
        "slab": {"id": "slab0", "draws": rows},
        "samples_per_prompt": samples,
        "sampling": {**SAMPLING, **sampling},
        "seed": 11,
    }


def generate(worker: Worker, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The operation's answer and the slab's bytes (empty if there is none)."""
    io = OperationIO.alone()
    answer = worker.operations["generate"](arguments, io)
    return answer, io.blobs[0] if io.blobs else b""


def trajectories(slab: bytes) -> list[dict[str, Any]]:
    """All trajectories of a slab in order, their arrays as numpy."""
    found = []
    for group in msgpack.unpackb(slab)["groups"]:
        for one in group["trajectories"]:
            arrays = {
                "tokens": np.frombuffer(one["tokens"], "<i4"),
                "action_mask": np.frombuffer(one["action_mask"], np.uint8),
                "behaviour_logp": np.frombuffer(one["behaviour_logp"], "<f4"),
            }
            found.append({**one, **arrays, "draw": group["draw"]})
    return found


def teacher_forced(model: Any, tokens: np.ndarray, sampling: Sampling) -> np.ndarray:
    """
    [T] float32: log pi(tokens[t] | tokens[<t]) of one row alone, without cache or padding; 0 at the
    first token.
    """
    import torch

    from holdfast_worker.sampler.choosing import log_distribution

    ids = torch.tensor(tokens.astype(np.int64))[None]
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False).logits[0, :-1]
        met = torch.zeros(logits.shape, dtype=torch.int64)  # [T - 1, V] which token came where
        met[torch.arange(len(met)), ids[0, :-1]] = 1
        logp = log_distribution(logits, sampling, met.cumsum(0) > 0)
    chosen = logp.gather(-1, ids[0, 1:, None]).squeeze(-1).numpy()
    return np.concatenate([np.zeros(1, np.float32), chosen])


def logp_errors(model: Any, slab: bytes) -> np.ndarray:
    """|recorded - teacher-forced| of every sampled token of a slab."""
    sampling = decode(Sampling, msgpack.unpackb(slab)["sampling"])
    errors = []
    for one in trajectories(slab):
        sampled = one["action_mask"] == 1
        reference = teacher_forced(model, one["tokens"], sampling)
        errors.append(np.abs(reference - one["behaviour_logp"])[sampled])
    return np.concatenate(errors)
