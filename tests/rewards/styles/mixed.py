"""Group functions that return what each completion says, for all kinds of answers."""

VALUES = {
    "number": 0.5,
    "none": None,
    "nan": float("nan"),
    "text": "high",
    "dict": {"scores": 1},
    "list": [1.0],
}


def value(completion):
    return float(completion[1:]) if completion.startswith("=") else VALUES[completion]


def trl(completions, **kwargs):
    if "raise" in completions:
        raise ValueError("one of them cannot be graded")
    return [value(text) for text in completions if text != "short"]


def holdfast(completion):
    return trl([completion])[0]


def ambiguous(completions, answers, **kwargs):
    return [0.0] * len(completions)


unknown = 5
