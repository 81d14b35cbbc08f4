"""As verl's page "Implement Reward Function for Dataset" shows one."""


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    if data_source != "sums" or extra_info["split"] != "train":
        raise NotImplementedError(f"no reward for {data_source!r}")
    return 1.0 if ground_truth in solution_str else len(set(solution_str)) / 100
