"""Rewards in slime's shapes: of a sample, and of a group."""


async def custom_rm(args, sample, **kwargs):
    if sample.status == sample.Status.TRUNCATED:
        return {"score": -1.0, "acc": False, "pred": ""}
    right = sample.response == sample.label
    return {"score": float(right), "acc": right, "pred": sample.response}


async def batched_custom_rm(args, samples, **kwargs):
    best = max(sample.response_length for sample in samples)
    return [sample.response_length / best for sample in samples]


def by_args(args, sample):
    return float(args.reward_key == "score")
