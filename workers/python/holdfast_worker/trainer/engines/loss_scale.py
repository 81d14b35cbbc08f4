"""
What the loss is multiplied by while float16 trains, so that small gradients do not become zero: its
numbers reach from 6e-8 to 65,504 (Micikevicius et al. 2018, arXiv:1710.03740, section 3.2).
"""

from __future__ import annotations

from typing import Any, TypedDict

# As torch.amp.GradScaler has them.
START = 2.0**16
GROWTH_STEPS = 2000
VALUE_MAX = 2.0**24  # Beyond it nothing more becomes representable: 6e-8 is 2**-24.


class LossScaleState(TypedDict):
    value: float
    steps: int  # Taken since it changed.


class LossScale:
    """
    `value` is always a power of 2, so that it changes no digit of a gradient that has room for it.
    It is 1 for types that need none.
    """

    def __init__(self, dtype: str) -> None:
        self.changes = dtype == "float16"
        self.restore(None)

    def scaled(self, loss: Any) -> Any:
        return loss if self.value == 1 else loss * self.value

    def halve(self) -> bool:
        """After gradients that overflowed; False if that cannot help."""
        if self.value <= 1:
            return False
        self.value, self.steps = self.value / 2, 0
        return True

    def count_step(self) -> None:
        """A step was taken: after enough of them the scale is doubled."""
        if not self.changes:
            return
        self.steps += 1
        if self.steps >= GROWTH_STEPS:
            self.value, self.steps = min(self.value * 2, VALUE_MAX), 0

    def state(self) -> LossScaleState:
        return {"value": self.value, "steps": self.steps}

    def restore(self, state: LossScaleState | None) -> None:
        """Continues from a checkpoint's state; None: from the start."""
        self.value = state["value"] if state else START if self.changes else 1.0
        self.steps = state["steps"] if state else 0
