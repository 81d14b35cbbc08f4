"""
One process of `deno task bench optimizers`: an optimizer's steps on random gradients.

python optimizer_step.py JSON, with {name, width, layers, vocabulary, repeats}; prints one JSON line:
MiB of its state, weights, and the median seconds of a step.
"""

from __future__ import annotations

import json
import sys
import time

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from holdfast_worker.trainer.engines.optimizers import optimizer_of
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import Optimizer

MIB = 1 << 20


def main() -> None:
    work = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    config = Qwen2Config(
        vocab_size=work["vocabulary"],
        hidden_size=work["width"],
        intermediate_size=3 * work["width"],
        num_hidden_layers=work["layers"],
        num_attention_heads=4,
        num_key_value_heads=4,
        tie_word_embeddings=True,
    )
    model = Qwen2ForCausalLM(config)
    settings = {
        "name": work["name"],
        "lr": 1e-4,
        "betas": [0.9, 0.999],
        "eps": 1e-8,
        "weight_decay": 0.0,
        "clip_grad_norm": None,
        "schedule": {
            "name": "constant",
            "warmup_steps": 0,
            "stable_steps": 0,
            "total_steps": None,
            "min_ratio": 0.0,
        },
    }
    optimizer = optimizer_of(
        model, decode(Optimizer, settings), fused=True, master=lambda parameter: parameter
    )
    seconds: list[float] = []
    for _ in range(work["repeats"] + 1):  # The first step makes the state.
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        started = time.perf_counter()
        optimizer.step()
        seconds.append(time.perf_counter() - started)
    state = [value for one in optimizer.state.values() for value in one.values()]
    parts = {id(value): value.nbytes for value in state if torch.is_tensor(value)}
    measurement = {
        "weights": sum(parameter.numel() for parameter in model.parameters()),
        "state_mib": sum(parts.values()) / MIB,
        "seconds": sorted(seconds[1:])[work["repeats"] // 2],
    }
    print(json.dumps(measurement))


main()
