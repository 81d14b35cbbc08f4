"""What we use of math-verify. An expression is opaque to us."""

from collections.abc import Sequence

class Expression: ...

class ExprExtractionConfig:
    def __init__(self) -> None: ...

class LatexExtractionConfig:
    def __init__(self, *, boxed_match_priority: int = ...) -> None: ...

def parse(
    pred: str,
    extraction_config: Sequence[ExprExtractionConfig | LatexExtractionConfig],
    *,
    parsing_timeout: int | None,
) -> list[Expression]: ...
def verify(
    gold: list[Expression], target: list[Expression], *, timeout_seconds: int | None
) -> bool: ...
