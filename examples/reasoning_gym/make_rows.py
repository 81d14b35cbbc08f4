"""
Rows of three generated task families, for sft.yaml and grpo.yaml beside this file.

Needs `pip install reasoning-gym==0.1.25`. Usage: `python make_rows.py DIRECTORY`.

Writes FAMILY.train.jsonl and FAMILY.eval.jsonl: `id`, `prompt`, `answer` and `completion` (the
answer, to learn from). Held-out questions are none of the training ones.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import reasoning_gym

FAMILIES = {
    # 3 - 8 + 5: two or three terms of one digit.
    "chain_sum": {"min_terms": 2, "max_terms": 3, "min_digits": 1, "max_digits": 1},
    # Words of three to five letters.
    "spell_backward": {"min_word_len": 3, "max_word_len": 5},
    # Two numbers up to 40.
    "gcd": {"min_numbers": 2, "max_numbers": 2, "min_value": 2, "max_value": 40},
}
TRAIN, EVAL = 4096, 256
SEED = 42


def rows_of(family: str) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """
    Rows for training and for evaluation. Different questions are shuffled before they are split:
    rare ones come late among those that a family generates.
    """
    problems = reasoning_gym.create_dataset(
        family, size=4 * (TRAIN + EVAL), seed=SEED, **FAMILIES[family]
    )
    questions = {problem["question"]: problem["answer"] for problem in problems}
    different = list(questions.items())
    random.Random(SEED).shuffle(different)
    rows = [
        {
            "id": f"{family}/{place}",
            "prompt": f"{question.strip()}\n",
            "answer": answer,
            "completion": answer,
        }
        for place, (question, answer) in enumerate(different)
    ]
    return rows[EVAL : EVAL + TRAIN], rows[:EVAL]


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        for split, rows in zip(("train", "eval"), rows_of(family), strict=True):
            path = directory / f"{family}.{split}.jsonl"
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
            print(f"{path}: {len(rows)} rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
