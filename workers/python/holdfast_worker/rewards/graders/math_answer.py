"""The reward `math`: whether a completion's answer equals the row's, by math-verify and SymPy.

math-verify limits time by alarms. Its limits are off, because an alarm cannot interrupt C code: the
pool ends this process when `timeout_ms` is over. Both sides are read as math-verify's own tests
read them, with the content of `\\boxed{}` first.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from math_verify import Expression

try:
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify
except ImportError as missing:
    raise ImportError(
        f"Cannot use the reward math because {sys.executable} has no math-verify ({missing}). Fix: "
        "install math-verify[antlr4_13_2]==0.9.0 there, or leave out trainer.python"
    ) from None

# It warns once that its time limits are off.
logging.getLogger("math_verify").setLevel(logging.ERROR)

FORMS = (LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig())
ENVIRONMENTS = ("$", "\\[", "\\(", "\\boxed", "\\begin")


def grade(completion: str, answer: str) -> float:
    """1.0 if the completion's answer equals `answer`, else 0.0. Raises ValueError if `answer` has
    nothing to compare with: the row is broken.
    """
    wanted = expressions(answer)
    if not wanted:
        raise ValueError(
            f"Cannot score with math because the row's answer is no mathematics: {answer[:200]!r}"
        )
    found = parse(completion, FORMS, parsing_timeout=None)
    return float(verify(wanted, found, timeout_seconds=None))


def expressions(answer: str) -> list[Expression]:
    """What a row's answer means. TeX counts only in an environment, which most data lack."""
    if not any(mark in answer for mark in ENVIRONMENTS):
        boxed = parse(f"\\boxed{{{answer}}}", FORMS, parsing_timeout=None)
        if boxed:
            return boxed
    return parse(answer, FORMS, parsing_timeout=None)
