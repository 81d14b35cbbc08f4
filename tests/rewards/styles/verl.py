"""A reward in verl's shape: one sample, the truth of `reward_model`, a dict with extras."""


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    right = solution_str.strip().endswith(ground_truth)
    return {
        "score": 1.0 if right else 0.0,
        "acc": right,
        "pred": solution_str[-8:],
        "split": float(extra_info["split"] == "train"),
    }


async def plain(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    if data_source != "gsm8k":
        raise NotImplementedError(f"no reward for {data_source!r}")
    return float(solution_str == ground_truth)


def batched(data_sources, solution_strs, ground_truths, extra_infos, **kwargs):
    return [float(text == truth) for text, truth in zip(solution_strs, ground_truths)]
