"""
One process of `deno task bench logits`: trains one step and scores once, all logits at once or in
chunks.

python logits_memory.py JSON, with {chunk_tokens: null | n, tokens, vocabulary, hidden, entropy,
repeats}; prints one JSON line. Peak memory is that of the process, from its own counter, less what
it had before the first forward.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from types import SimpleNamespace

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from holdfast_worker.trainer.forward import policy_forward

MIB = 1 << 20


def resident_mib() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / MIB


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    work = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    config = Qwen2Config(
        vocab_size=work["vocabulary"],
        hidden_size=work["hidden"],
        intermediate_size=2 * work["hidden"],
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        tie_word_embeddings=True,
    )
    model = Qwen2ForCausalLM(config).train()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(
            parameter
        )  # Both cases hold them; they are not part of a chunk's memory.
    rows, width = 8, work["tokens"] // 8 + 1
    tokens = torch.randint(work["vocabulary"], (rows, width))
    mask = torch.ones_like(tokens, dtype=torch.bool)
    mask[:, 0] = False
    part = SimpleNamespace(tokens=tokens, mask=mask)
    need = {"logp", "entropy"} if work["entropy"] else {"logp"}
    before, seconds = resident_mib(), []
    for _ in range(work["repeats"]):
        started = time.perf_counter()
        live = policy_forward(
            model, part, need=need, temperature=0.9, chunk_tokens=work["chunk_tokens"]
        )
        sum(torch.where(mask, value, 0.0).mean() for value in live.values()).backward()
        seconds.append(time.perf_counter() - started)
    norm = torch.nn.utils.get_total_norm(
        [parameter.grad for parameter in model.parameters()]
    ).item()
    measurement = {
        "step_mib": peak_mib() - before,
        "seconds": sorted(seconds)[len(seconds) // 2],
        "grad_norm": norm,
    }
    print(json.dumps(measurement))


main()
