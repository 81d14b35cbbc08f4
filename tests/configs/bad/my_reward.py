def score_answer(completion, answer):
    return 0.0
