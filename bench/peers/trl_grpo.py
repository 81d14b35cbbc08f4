"""
TRL's GRPOTrainer on the work that bench/grpo.ts describes.

    python trl_grpo.py FILE       FILE: JSON as bench/grpo.ts writes it

Ends with one JSON line: {"step_s", "tokens", "settings", "packages"}. `step_s`: from the end of one
optimizer step to the end of the next.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from importlib.metadata import version
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer


class StepClock(TrainerCallback):
    """When each optimizer step ended, including the generation and scoring before it."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.ends.append(time.perf_counter())


def settings_of(work: dict[str, Any]) -> dict[str, Any]:
    """Everything that costs time and is not the algorithm is off."""
    return {
        "per_device_train_batch_size": work["prompts"] * work["samples"],
        "gradient_accumulation_steps": 1,
        "num_generations": work["samples"],
        "max_completion_length": work["tokens"],
        "num_iterations": 1,
        "beta": 0.0,
        "loss_type": "grpo",
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "learning_rate": work["lr"],
        "lr_scheduler_type": "constant",
        "max_grad_norm": 1.0,
        "max_steps": work["steps"],
        "gradient_checkpointing": False,
        "bf16": False,
        "use_cpu": True,
        "logging_strategy": "no",
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "shuffle_dataset": False,
        "seed": work["seed"],
    }


def main() -> None:
    with open(sys.argv[1]) as file:
        work = json.load(file)
    torch.set_num_threads(work["threads"])
    counted: list[int] = []

    def brevity(completions: list[str], completion_ids: list[list[int]], **_: Any) -> list[float]:
        counted.append(sum(map(len, completion_ids)))
        return [1 - min(len(text), work["length_max"]) / work["length_max"] for text in completions]

    clock = StepClock()
    settings = settings_of(work)
    with tempfile.TemporaryDirectory() as directory:
        trainer = GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(work["model"], dtype=torch.float32),
            processing_class=AutoTokenizer.from_pretrained(work["model"], padding_side="left"),
            reward_funcs=brevity,
            args=GRPOConfig(output_dir=directory, **settings),
            train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in work["rows"]]),
            callbacks=[clock],
        )
        trainer.train()
    answer = {
        "step_s": [end - begin for begin, end in zip(clock.ends, clock.ends[1:])],
        "tokens": counted,
        "settings": settings,
        "packages": {
            name: version(name) for name in ("trl", "transformers", "torch", "accelerate")
        },
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
