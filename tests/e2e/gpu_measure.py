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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "workers" / "python"), str(ROOT / "tests" / "python")]
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch

VOCABULARY = 32_768
LENGTH_MAX = 4096
WARM_STEPS = 1  # Kernels are chosen and loaded in the first step: it is not counted.


def write_model(directory: Path, *, layers: int, width: int, device: str) -> int:
    """A Qwen2 of random bfloat16 weights with the quickstart's tokenizer; its parameters."""
    from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

    from holdfast_worker.trainer.create_model import add_chat_template, character_tokenizer

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
    """Seconds and the GPU's memory at its peak, per operation."""

    def __init__(self, device: str) -> None:
        self.cuda = device != "cpu"

    def run(self, work: Callable[[], Any]) -> tuple[Any, float, float | None]:
        if self.cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        began = time.perf_counter()
        answer = work()
        if self.cuda:
            torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() / 2**30 if self.cuda else None
        return answer, time.perf_counter() - began, peak


def bytes_of_gib(gib: float | None, parameters: int) -> float | None:
    return None if gib is None else round(gib * 2**30 / parameters, 2)


def trainer(args: argparse.Namespace) -> dict[str, Any]:
    from trainer_harness import Artifacts, Trainer, trajectory_batch

    from holdfast_worker.operation import RankContext
    from holdfast_worker.trainer.worker import Worker

    home = args.dir / f"{args.engine}{args.zero}{'_packed' if args.packing else ''}"
    measured = Trainer.__new__(Trainer)  # Its worker may be a rank of DeepSpeed's.
    measured.directory, measured.artifacts = home, Artifacts(home / "artifacts")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    import trainer_harness

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
    measured.worker = Worker(
        RankContext(
            "trainer",
            "trainer",
            1,
            0,
            1,
            spec,
            artifacts_dir=str(measured.artifacts.directory),
            home=str(home),
            master_port=port,
        )
    )
    measured.worker.boot()
    clock = Clock(args.device)
    measured.optimizer = trainer_harness.OPTIMIZER

    def load() -> None:
        measured.call(
            "load",
            version="v0",
            model_path=str(args.dir / "model"),
            optimizer=measured.optimizer,
            checkpoint=None,
        )

    _, load_s, _ = clock.run(load)
    held = torch.cuda.memory_allocated() / 2**30 if clock.cuda else None
    parameters = count(measured.worker)
    step_s, peaks = [], []
    for number in range(args.steps + WARM_STEPS):
        batch = trajectory_batch(
            measured.artifacts, [[args.length] * 4] * (args.rows // 4), seed=number
        )
        between = (f"v{number}", f"v{number + 1}")

        def train() -> Any:
            return measured.train(
                batch, between=between, tokens_max=args.tokens_max, packing=args.packing
            )

        _, seconds, peak = clock.run(train)
        step_s.append(seconds)
        peaks.append(peak)
    rest = torch.cuda.memory_allocated() / 2**30 if clock.cuda else None
    version = f"v{args.steps + WARM_STEPS}"
    publication, publish_s, _ = clock.run(
        lambda: measured.call("publish", version=version, dir=str(home / "publication"))
    )
    (args.dir / "publication.json").write_text(json.dumps(publication))
    _, save_s, _ = clock.run(
        lambda: measured.call("save", version=version, dir=str(home / "checkpoint"))
    )
    counted = step_s[WARM_STEPS:]
    tokens = args.rows * args.length
    size = sum(path.stat().st_size for path in (home / "checkpoint").rglob("*") if path.is_file())
    return {
        "trainer": f"{args.engine} {args.zero}{' packed' if args.packing else ''}",
        "parameters": parameters,
        "load_s": round(load_s, 2),
        "first_step_s": round(step_s[0], 2),
        "step_s": [round(seconds, 3) for seconds in counted],
        "tokens_per_step": tokens,
        "tokens_per_s": round(tokens * len(counted) / sum(counted)),
        "gib_after_load": held and round(held, 2),
        "gib_between_steps": rest and round(rest, 2),
        "gib_peak_of_step": None if peaks[-1] is None else round(max(peaks), 2),
        "bytes_per_parameter_between_steps": bytes_of_gib(rest, parameters),
        "bytes_per_parameter_at_peak": bytes_of_gib(peaks[-1] and max(peaks), parameters),
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
        "gib_peak": peaks[-1] and round(max(peaks), 2),
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
