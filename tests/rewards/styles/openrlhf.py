"""A reward in OpenRLHF's shape: whole texts, prompts and labels, and tensors in a dict."""

import torch


def reward_func(queries, prompts, labels, **kwargs):
    answers = [query[len(prompt) :] for query, prompt in zip(queries, prompts)]
    rewards = torch.tensor([float(text == label) for text, label in zip(answers, labels)])
    return {
        "rewards": rewards,
        "scores": rewards.clamp(0, 1),
        "extra_logs": {"length": torch.tensor([len(text) for text in answers]), "half": 0.5},
    }
