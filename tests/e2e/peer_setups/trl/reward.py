"""As TRL's page "GRPO Trainer" describes a reward for conversations, with a column of the rows."""


def reward_func(prompts, completions, ground_truth, log_metric=None, **kwargs):
    contents = [completion[0]["content"] for completion in completions]
    if log_metric:
        log_metric("characters", sum(map(len, contents)) / len(contents))
    return [
        1.0 if truth in content else len(set(content)) / 100
        for content, truth in zip(contents, ground_truth)
    ]
