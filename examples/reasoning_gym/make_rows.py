"""
Rows of three generated task families, for sft.yaml and grpo.yaml beside this file.

Needs `pip install -r requirements.txt`. Usage: `python make_rows.py DIRECTORY`.

Writes FAMILY.train.jsonl and FAMILY.eval.jsonl: `id`, `prompt`, `answer` and `completion` (the
answer, to learn from). No held-out question is trained on, in another order of its numbers either.
Prompts are short, since the model reads one character at a time: `ordinary backward: ` for "Spell
this word backward (example: sun -> nus): ordinary".
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import reasoning_gym

FAMILIES = {
    # Two or three terms of one digit.
    "chain_sum": {"min_terms": 2, "max_terms": 3, "min_digits": 1, "max_digits": 1},
    # Its words have at most ten letters.
    "spell_backward": {"min_word_len": 8, "max_word_len": 10},
    # Two numbers up to 60.
    "gcd": {"min_numbers": 2, "max_numbers": 2, "min_value": 2, "max_value": 60},
}
Problem = dict[str, Any]  # What reasoning-gym says of a question besides its text.
PROMPTS: dict[str, Callable[[Problem], str]] = {
    "chain_sum": lambda problem: f"{problem['expression']} = ",
    "spell_backward": lambda problem: f"{problem['word']} backward: ",
    "gcd": lambda problem: f"gcd of {' and '.join(map(str, problem['numbers']))}: ",
}
# Questions with the same key are the same in another order.
KEYS: dict[str, Callable[[Problem], Hashable]] = {
    "chain_sum": lambda problem: tuple(sorted(signed_terms(problem["expression"]))),
    "spell_backward": lambda problem: problem["word"],
    "gcd": lambda problem: tuple(sorted(problem["numbers"])),
}
TRAIN, EVAL = 4096, 256
SEED = 42


def signed_terms(expression: str) -> list[int]:
    """The terms of `4 - 1 + 3`: 4, -1 and 3."""
    return [int(term) for term in expression.replace("- ", "-").replace("+ ", "+").split()]


def rows_of(family: str) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """
    Rows for training and for evaluation. Keys are shuffled before they are split: rare questions
    come late among those that a family generates. Of a held-out key one question is kept.
    """
    problems = reasoning_gym.create_dataset(
        family, size=4 * (TRAIN + EVAL), seed=SEED, **FAMILIES[family]
    )
    answers: dict[Hashable, dict[str, str]] = {}
    for problem in problems:
        facts = problem["metadata"]
        answers.setdefault(KEYS[family](facts), {})[PROMPTS[family](facts)] = problem["answer"]
    different = list(answers.values())
    random.Random(SEED).shuffle(different)
    held_out = [next(iter(questions.items())) for questions in different[:EVAL]]
    trained = [question for questions in different[EVAL:] for question in questions.items()]
    random.Random(SEED).shuffle(trained)
    return rows(family, "train", trained[:TRAIN]), rows(family, "eval", held_out)


def rows(family: str, split: str, questions: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [
        {
            "id": f"{family}/{split}/{place}",
            "prompt": question,
            "answer": answer,
            "completion": answer,
        }
        for place, (question, answer) in enumerate(questions)
    ]


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        for split, split_rows in zip(("train", "eval"), rows_of(family), strict=True):
            path = directory / f"{family}.{split}.jsonl"
            path.write_text("".join(f"{json.dumps(row)}\n" for row in split_rows))
            print(f"{path}: {len(split_rows)} rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
