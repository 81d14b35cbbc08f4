"""
What one model costs on this machine: memory, seconds and tokens per second of a trainer and of a
sampler, without an engine. `gpu_check.sh` runs it; each command prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HELPERS = [ROOT / "tests" / "python" / folder for folder in ("sampler", "trainer")]
sys.path[:0] = [str(ROOT / "workers" / "python"), *map(str, HELPERS)]
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402  (After the variable that it reads.)

VOCABULARY = 32_768
LENGTH_MAX = 4096
WARM_STEPS = 1  # Kernels are chosen and loaded in the first step: it is not counted.


def write_model(directory: Path, *, layers: int, width: int, device: str) -> int:
    """A Qwen2 of random bfloat16 weights with the quickstart's tokenizer; its parameters."""
    from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

    from holdfast_worker.trainer.model.create_model import add_chat_template, character_tokenizer

    tokenizer = character_tokenizer()
    tokenizer.model_max_length = LENGTH_MAX
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    heads = max(width // 128, 1)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        bos_token_id=None,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=LENGTH_MAX,
        tie_word_embeddings=True,
        **ids,
    )
    torch.manual_seed(1)
    with torch.device(device):
        model = Qwen2ForCausalLM(config).to(torch.bfloat16)
    model.generation_config = GenerationConfig(bos_token_id=None, **ids)
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    add_chat_template(directory)
    return sum(parameter.numel() for parameter in model.parameters())


def write_rows(path: Path, *, characters: int) -> None:
    """Rows with a long answer that a model can learn to write."""
    with path.open("w") as file:
        for number in range(512):
            digits = str(10_000 + 137 * number)
            answer = "".join(sorted(digits))
            text = (answer * (characters // len(answer) + 1))[:characters]
            row = {"prompt": f"sort {digits} =", "answer": answer, "completion": text}
            file.write(json.dumps({"id": number, **row}) + "\n")


class Clock:
    """Seconds and the GPU's memory (GiB that torch allocated; 0 on the CPU), per operation."""

    def __init__(self, device: str) -> None:
        self.cuda = device != "cpu"

    def held(self) -> float:
        return torch.cuda.memory_allocated() / 2**30 if self.cuda else 0.0

    def run(self, work: Callable[[], Any]) -> tuple[Any, float, float]:
        """The answer, its seconds and the memory at its peak."""
        if self.cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        began = time.perf_counter()
        answer = work()
        if self.cuda:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        return answer, seconds, torch.cuda.max_memory_allocated() / 2**30 if self.cuda else 0.0


def booted(args: argparse.Namespace) -> Any:
    """A trainer's worker in this process, one rank of DeepSpeed's if it is asked for."""
    import trainer_harness
    from holdfast_worker.operation import RankContext
    from holdfast_worker.trainer.worker import Worker

    packed = "_packed" if args.packing else ""
    home = args.dir / f"{args.engine}{args.zero}{packed}"
    measured = trainer_harness.Trainer.__new__(trainer_harness.Trainer)
    measured.directory, measured.optimizer = home, trainer_harness.OPTIMIZER
    measured.artifacts = trainer_harness.Artifacts(home / "artifacts")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    spec = {
        **trainer_harness.SPEC,
        "engine": args.engine,
        "zero": args.zero,
        "dtype": "bfloat16",
        "gradient_checkpointing": True,
        "threads": 4,
        "device": args.device,
        "packing": args.packing,
    }
    places = {"artifacts_dir": str(measured.artifacts.directory), "home": str(home)}
    context = RankContext("trainer", "trainer", 1, 0, 1, spec, **places, master_port=port)
    measured.worker = Worker(context)
    measured.worker.boot()
    return measured


def trained(measured: Any, args: argparse.Namespace, number: int) -> Any:
    from trainer_harness import trajectory_batch

    lengths = [[args.length] * 4] * (args.rows // 4)
    return measured.train(
        trajectory_batch(measured.artifacts, lengths, seed=number),
        between=(f"v{number}", f"v{number + 1}"),
        tokens_max=args.tokens_max,
        packing=args.packing,
    )


def trainer(args: argparse.Namespace) -> dict[str, Any]:
    measured, clock = booted(args), Clock(args.device)
    home, model = measured.directory, str(args.dir / "model")
    start = {"version": "v0", "model_path": model, "checkpoint": None}
    _, load_s, _ = clock.run(lambda: measured.call("load", **start, optimizer=measured.optimizer))
    held = clock.held()
    parameters = count(measured.worker)
    steps = [
        clock.run(partial(trained, measured, args, number))
        for number in range(args.steps + WARM_STEPS)
    ]
    between, peak = clock.held(), max(peak for _, _, peak in steps)
    version = f"v{len(steps)}"
    publication, publish_s, _ = clock.run(
        lambda: measured.call("publish", version=version, dir=str(home / "publication"))
    )
    (args.dir / "publication.json").write_text(json.dumps(publication))
    checkpoint = home / "checkpoint"
    _, save_s, _ = clock.run(lambda: measured.call("save", version=version, dir=str(checkpoint)))
    counted = [seconds for _, seconds, _ in steps[WARM_STEPS:]]
    tokens = args.rows * args.length
    size = sum(path.stat().st_size for path in checkpoint.rglob("*") if path.is_file())
    return {
        "trainer": home.name,
        "parameters": parameters,
        "load_s": round(load_s, 2),
        "first_step_s": round(steps[0][1], 2),
        "step_s": [round(seconds, 3) for seconds in counted],
        "tokens_per_step": tokens,
        "tokens_per_s": round(tokens * len(counted) / sum(counted)),
        "gib_after_load": round(held, 2),
        "gib_between_steps": round(between, 2),
        "gib_peak_of_step": round(peak, 2),
        "bytes_per_parameter_between_steps": round(between * 2**30 / parameters, 2),
        "bytes_per_parameter_at_peak": round(peak * 2**30 / parameters, 2),
        "publish_s": round(publish_s, 2),
        "save_s": round(save_s, 2),
        "checkpoint_gib": round(size / 2**30, 2),
    }


def count(worker: Any) -> int:
    """Parameters of the whole model; ZeRO 3 leaves a rank a part of each."""
    return sum(getattr(p, "ds_numel", p.numel()) for p in worker.engine.module.parameters())


def sampler(args: argparse.Namespace) -> dict[str, Any]:
    import sampler_fixtures as fixtures

    worker = fixtures.make_worker(dtype="bfloat16", device=args.device, threads=4)
    clock = Clock(args.device)
    publication = json.loads((args.dir / "publication.json").read_text())
    _, load_s, _ = clock.run(lambda: fixtures.load(worker, args.dir / "model", publication))
    slab = fixtures.slab_arguments(
        publication["version"],
        draws=args.rows // 4,
        samples=4,
        tokens_max=args.length,
        ignore_eos=True,
    )
    tokens = args.rows * args.length
    seconds, peaks = [], []
    for _ in range(1 + WARM_STEPS):
        _, took, peak = clock.run(lambda: fixtures.generate(worker, slab))
        seconds.append(took)
        peaks.append(peak)
    return {
        "sampler": "huggingface",
        "sequences": args.rows,
        "tokens_each": args.length,
        "load_s": round(load_s, 2),
        "generate_s": [round(one, 2) for one in seconds],
        "tokens_per_s": round(tokens / seconds[-1]),
        "gib_peak": round(max(peaks), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["model", "trainer", "sampler"])
    parser.add_argument("dir", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--zero", type=int, default=0)
    parser.add_argument("--packing", action="store_true")
    parser.add_argument("--layers", type=int, default=20)
    parser.add_argument("--width", type=int, default=1536)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--tokens-max", type=int, default=16_384)
    args = parser.parse_args()
    args.dir.mkdir(parents=True, exist_ok=True)
    if args.what == "model":
        began = time.perf_counter()
        parameters = write_model(
            args.dir / "model", layers=args.layers, width=args.width, device=args.device
        )
        write_rows(args.dir / "rows.jsonl", characters=args.length)
        seconds = round(time.perf_counter() - began, 2)
        print(json.dumps({"parameters": parameters, "seconds": seconds}))
    else:
        print(json.dumps({"trainer": trainer, "sampler": sampler}[args.what](args)))
    sys.stdout.flush()
    os._exit(0)  # DeepSpeed's group would wait at the exit.


if __name__ == "__main__":
    main()
