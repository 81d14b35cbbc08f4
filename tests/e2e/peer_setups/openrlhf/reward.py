"""As OpenRLHF's README shows one: whole texts in, tensors in a dict out."""

import torch


def reward_func(queries, prompts, labels):
    answers = [query[len(prompt) :] for query, prompt in zip(queries, prompts)]
    reward = torch.tensor(
        [
            1.0 if label in answer else len(set(answer)) / 100
            for answer, label in zip(answers, labels)
        ]
    )
    return {
        "rewards": reward,
        "scores": reward,
        "extra_logs": {"distinct": reward.mean().item()},
    }
