"""
The quickstart as a plain PyTorch script: same model, task and sizes, no durability, one process,
one file.

    python plain_grpo.py FILE       FILE: JSON as bench/quickstart.ts writes it

Ends with one JSON line: {"warmup_s", "rounds_s", "round_ms", "tokens_per_s", "rewards"}.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from typing import Any

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

PAD, EOS = 0, 1
CHARACTERS = " 0123456789abcdefghijklmnopqrstuvwxyz="
TOKEN_OF = {character: place + 2 for place, character in enumerate(CHARACTERS)}
VOCABULARY = 102  # That of the shipped recipe, so that the output head costs the same.
Row = dict[str, str]


def encode(text: str) -> list[int]:
    return [TOKEN_OF[character] for character in text]


def decode(tokens: list[int]) -> str:
    return "".join(CHARACTERS[token - 2] for token in tokens if 2 <= token < len(CHARACTERS) + 2)


def padded(sequences: list[list[int]]) -> torch.Tensor:
    width = max(map(len, sequences))
    return torch.tensor([sequence + [PAD] * (width - len(sequence)) for sequence in sequences])


class Trainer:
    """AdamW with the configuration's rate, schedule and clip."""

    def __init__(self, model: Any, optimizer: dict[str, Any]) -> None:
        self.model, self.settings, self.steps = model, optimizer, 0
        self.adamw = torch.optim.AdamW(
            model.parameters(),
            betas=tuple(optimizer["betas"]),
            eps=optimizer["eps"],
            weight_decay=optimizer["weight_decay"],
            fused=True,
        )

    def rate(self) -> float:
        schedule, step = self.settings["schedule"], self.steps
        if step < schedule["warmup_steps"]:
            return self.settings["lr"] * (step + 1) / schedule["warmup_steps"]
        if schedule["name"] != "cosine":
            return self.settings["lr"]
        part = min(1.0, step / schedule["total_steps"])
        floor = schedule["min_ratio"]
        return self.settings["lr"] * (floor + (1 - floor) * (1 + math.cos(math.pi * part)) / 2)

    def step(self, loss: torch.Tensor) -> None:
        loss.backward()
        torch.nn.utils.clip_grad_norm_(
            self.model.parameters(), self.settings["clip_grad_norm"] or math.inf
        )
        for group in self.adamw.param_groups:
            group["lr"] = self.rate()
        self.adamw.step()
        self.adamw.zero_grad()
        self.steps += 1


def token_logp(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """[B, T - 1] log-probability of each token after the first."""
    logits = model(input_ids=tokens, use_cache=False).logits[:, :-1].float()
    return torch.log_softmax(logits, -1).gather(-1, tokens[:, 1:, None]).squeeze(-1)


def supervised(trainer: Trainer, rows: list[Row]) -> None:
    prompts = [encode(row["prompt"]) for row in rows]
    tokens = padded([prompt + encode(row["answer"]) + [EOS] for prompt, row in zip(prompts, rows)])
    lengths = torch.tensor([len(prompt) for prompt in prompts])[:, None]
    mask = ((torch.arange(tokens.shape[1]) >= lengths) & (tokens != PAD))[:, 1:]
    trainer.step(-(token_logp(trainer.model, tokens) * mask).sum() / mask.sum())


def online(trainer: Trainer, rows: list[Row], work: dict[str, Any]) -> tuple[float, int]:
    """One round of GRPO: (mean reward, tokens sampled)."""
    model, samples = trainer.model, work["samples_per_prompt"]
    prompts = torch.tensor([encode(row["prompt"]) for row in rows])  # [P, T]: all of one length.
    with torch.no_grad():
        tokens = model.generate(
            input_ids=prompts,
            attention_mask=torch.ones_like(prompts),
            num_return_sequences=samples,
            max_new_tokens=work["tokens_max"],
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            pad_token_id=PAD,
            eos_token_id=EOS,
        )
    completions = tokens[:, prompts.shape[1] :]
    ended = (completions == EOS).cumsum(-1)
    mask = (ended == 0) | ((ended == 1) & (completions == EOS))
    answers = [row["answer"] for row in rows for _ in range(samples)]
    texts = [decode(completion[kept].tolist()) for completion, kept in zip(completions, mask)]
    reward = torch.tensor([float(text == answer) for text, answer in zip(texts, answers)]).view(
        -1, samples
    )
    advantage = (
        (reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-6)
    ).view(-1, 1)
    logp = token_logp(model, tokens)[:, prompts.shape[1] - 1 :]
    policy = -(logp - logp.detach()).exp() * advantage
    trainer.step(((policy * mask).sum(1) / mask.sum(1)).mean())
    return reward.mean().item(), int(mask.sum())


def main() -> None:
    with open(sys.argv[1]) as file:
        work = json.load(file)
    torch.set_num_threads(work["threads"])
    torch.manual_seed(work["seed"])
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=VOCABULARY, **work["model"]))
    warm, rounds = work["warmup"], work["online"]
    started = time.perf_counter()
    trainer = Trainer(model, warm["optimizer"])
    for number in range(warm["rounds"]):
        supervised(trainer, work["warmup_rows"][number * warm["rows"] :][: warm["rows"]])
    warmup_s = time.perf_counter() - started
    trainer = Trainer(model, rounds["optimizer"])
    times, rewards, tokens = [], [], 0
    for number in range(rounds["rounds"]):
        begun = time.perf_counter()
        rows = work["online_rows"][number * rounds["prompts"] :][: rounds["prompts"]]
        reward, sampled = online(trainer, rows, rounds)
        times.append(time.perf_counter() - begun)
        rewards.append(reward)
        tokens += sampled
    answer = {
        "warmup_s": warmup_s,
        "rounds_s": sum(times),
        "round_ms": 1000 * statistics.median(times),
        "tokens_per_s": tokens / sum(times),
        "rewards": rewards,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
