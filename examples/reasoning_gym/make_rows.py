"""
Rows of three generated task families, for sft.yaml and grpo.yaml beside this file.

Needs `pip install reasoning-gym==0.1.25`. Usage: `python make_rows.py DIRECTORY`.

Writes FAMILY.train.jsonl and FAMILY.eval.jsonl: `id`, `prompt`, `answer` and `completion` (the
answer, to learn from). Held-out questions are none of the training ones.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import reasoning_gym

FAMILIES = {
    # 23 + 58, 7 + 41: two terms of at most two digits.
    "chain_sum": {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2},
    # Words of three to six letters.
    "spell_backward": {"min_word_len": 3, "max_word_len": 6},
    # Two numbers up to 40.
    "gcd": {"min_numbers": 2, "max_numbers": 2, "min_value": 2, "max_value": 40},
}
TRAIN, EVAL = 4096, 256
SEED = 42


def rows_of(family: str) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Rows for training and for evaluation, in the order in which the family generates them."""
    problems = reasoning_gym.create_dataset(
        family, size=4 * (TRAIN + EVAL), seed=SEED, **FAMILIES[family]
    )
    questions = {problem["question"]: problem["answer"] for problem in problems}
    rows = [
        {
            "id": f"{family}/{place}",
            "prompt": f"{question.strip()}\n",
            "answer": answer,
            "completion": answer,
        }
        for place, (question, answer) in enumerate(questions.items())
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
