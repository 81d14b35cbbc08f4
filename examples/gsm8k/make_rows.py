"""
The short problems of GSM8K, for sft.yaml and grpo.yaml beside this file.

Usage: `python make_rows.py GSM8K DIRECTORY`, with train.jsonl and test.jsonl in the folder GSM8K as
`rl fetch` writes them.

Writes both files again with the problems whose solution has one or two calculations: `id`,
`question`, `answer` (the number after the mark ####) and `solution`. The notes of a calculator,
`<<48/2=24>>`, are left out: the model has none.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

CALCULATION = re.compile(r"<<.*?>>")
CALCULATIONS_MAX = 2
MARK = "#### "


def short_problems(path: Path) -> list[dict[str, str]]:
    """Of each problem its text, its number and its solution in words."""
    problems = []
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        problem = json.loads(text)
        if not 1 <= len(CALCULATION.findall(problem["answer"])) <= CALCULATIONS_MAX:
            continue
        solution = CALCULATION.sub("", problem["answer"])
        problems.append(
            {
                "id": f"{path.stem}/{line}",
                "question": problem["question"],
                "answer": solution.rpartition(MARK)[2].strip().replace(",", ""),
                "solution": solution,
            }
        )
    return problems


def main(gsm8k: Path, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("train.jsonl", "test.jsonl"):
        problems = short_problems(gsm8k / name)
        rows = "".join(f"{json.dumps(problem, ensure_ascii=False)}\n" for problem in problems)
        (directory / name).write_text(rows, encoding="utf-8")
        print(f"{directory / name}: {len(problems)} problems")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
