"""Rewards in FeynRL's shape: a tensor as long as the response, reward at its last token."""

from typing import Any

import torch


def compute_score(prompt_data: dict[str, Any], response_data: Any):
    correct_threshold = 0.0
    is_per_token = False
    r = torch.zeros((len(response_data.token_ids),), dtype=torch.float32)
    if response_data.text == prompt_data["solution"] and response_data.finish_reason == "stop":
        r[-1] = 1.0
    return r, is_per_token, correct_threshold


def compute_scores_batch(pairs):
    return [compute_score(prompt, response) for prompt, response in pairs]


def with_batch(prompt_data: dict[str, Any], response_data: Any):
    raise AssertionError("the batch is called in its place")


with_batch.batch = compute_scores_batch


def per_token(prompt_data, response_data):
    return torch.ones(len(response_data.token_ids)), True, 0.0
