"""A reward in TRL's shape: keyword lists, columns of the data set, None where it does not apply."""

import re


def boxed(completions, ground_truth, **kwargs):
    found = [re.search(r"\\boxed\{(.*?)\}", completion) for completion in completions]
    return [
        None if truth == "skip" else float(match is not None and match.group(1) == truth)
        for match, truth in zip(found, ground_truth)
    ]


async def conversational(prompts, completions, completion_ids, log_metric=None, **kwargs):
    log_metric("mean_tokens", sum(len(ids) for ids in completion_ids) / len(completion_ids))
    return [float(completion[0]["content"].startswith("yes")) for completion in completions]


def by_state(completions, trainer_state, **kwargs):
    return [float(trainer_state.global_step)] * len(completions)
