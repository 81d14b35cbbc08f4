"""In the shape that FeynRL calls: a tensor as long as the response, with the reward at its end."""

import torch


def compute_score(prompt_data, response_data):
    correct_threshold = 0.5
    is_per_token = False
    reward = torch.zeros((len(response_data.token_ids),), dtype=torch.float32)
    text = response_data.text
    reward[-1] = 1.0 if prompt_data["solution"] in text else len(set(text)) / 100
    return reward, is_per_token, correct_threshold
