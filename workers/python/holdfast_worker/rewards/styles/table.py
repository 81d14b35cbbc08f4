"""Every style, and which one a function has."""

from __future__ import annotations

from holdfast_worker.rewards.styles.feynrl import FEYNRL, FEYNRL_BATCH
from holdfast_worker.rewards.styles.holdfast import HOLDFAST
from holdfast_worker.rewards.styles.nemo_gym import NEMO_GYM
from holdfast_worker.rewards.styles.openrlhf import OPENRLHF
from holdfast_worker.rewards.styles.slime import SLIME, SLIME_GROUP
from holdfast_worker.rewards.styles.style import Style
from holdfast_worker.rewards.styles.target import Target
from holdfast_worker.rewards.styles.trl import TRL
from holdfast_worker.rewards.styles.verifiers import VERIFIERS, VERIFIERS_GROUP, VERIFIERS_RUBRIC
from holdfast_worker.rewards.styles.verifiers_v1 import VERIFIERS_V1
from holdfast_worker.rewards.styles.verl import VERL, VERL_BATCH

OF_FRAMEWORKS = (
    TRL,
    VERL,
    VERL_BATCH,
    OPENRLHF,
    FEYNRL,
    FEYNRL_BATCH,
    VERIFIERS,
    VERIFIERS_GROUP,
    VERIFIERS_RUBRIC,
    VERIFIERS_V1,
    SLIME,
    SLIME_GROUP,
    NEMO_GYM,
)
STYLES: dict[str, Style] = {style.name: style for style in (HOLDFAST, *OF_FRAMEWORKS)}


def recognise(target: Target, forced: str | None) -> tuple[Style, str]:
    """The style of a function and why. Raises TypeError if several fit, or none. Holdfast's own is
    what a function has that fits no other: each of its parameters may be a column.
    """
    if forced is not None:
        return STYLES[forced], "`style` names it"
    found = [(style, why) for style in OF_FRAMEWORKS if (why := style.recognise(target))]
    if len(found) > 1:
        names = " or ".join(f"{style.name} ({why})" for style, why in found)
        raise TypeError(
            f"Cannot tell how to call it because its style may be {names}. "
            f"Fix: name one: `style: {found[0][0].name}`"
        )
    if found:
        return found[0]
    if (why := HOLDFAST.recognise(target)) is not None:
        return HOLDFAST, why
    known = "; ".join(f"{style.name}: {style.signature}" for style in STYLES.values())
    raise TypeError(
        "Cannot tell how to call it because it is no function and has no known style. "
        f"Fix: name a function, or its `style`. Styles: {known}"
    )
