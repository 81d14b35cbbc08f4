"""
One slab as it is recorded: MessagePack of `GeneratedSlab` (`data/trajectory.ts`), keys exactly as
there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np


@dataclass(frozen=True)
class SampleRequest:
    """One sequence to sample: sample number `sample` of draw `draw`, after the tokens `prompt`."""

    draw: int
    sample: int
    prompt: list[int]


@dataclass(frozen=True)
class Completion:
    """What was sampled: tokens (the stop token too), their log-probabilities, and why it ended."""

    tokens: np.ndarray  # [C] int32
    logp: np.ndarray  # [C] float32
    stop: str
    text: str


@dataclass
class PromptGroup:
    """A draw of the slab with its encoded prompt; its completions in sample order."""

    draw: int
    row_id: str
    prompt_text: str
    prompt: list[int]
    completions: list[Completion] = field(default_factory=list)


def pack_slab(
    slab: str, groups: list[PromptGroup], *, version: str, sampling: dict[str, Any]
) -> bytes:
    """The bytes of one slab; the same groups give the same bytes."""
    packed = [
        {
            "draw": group.draw,
            "row_id": group.row_id,
            "prompt_text": group.prompt_text,
            "trajectories": [
                _trajectory(sample, completion, prompt=group.prompt, version=version)
                for sample, completion in enumerate(group.completions)
            ],
        }
        for group in groups
    ]
    return msgpack.packb(
        {"slab": slab, "version": version, "sampling": sampling, "groups": packed},
        use_bin_type=True,
    )


def _trajectory(
    sample: int, completion: Completion, *, prompt: list[int], version: str
) -> dict[str, object]:
    tokens = np.asarray(prompt, dtype="<i4")
    start, end = len(prompt), len(prompt) + len(completion.tokens)
    mask = np.zeros(end, dtype=np.uint8)
    mask[start:] = 1
    logp = np.zeros(end, dtype="<f4")
    logp[start:] = completion.logp
    return {
        "sample": sample,
        "tokens": np.concatenate([tokens, completion.tokens.astype("<i4")]).tobytes(),
        "action_mask": mask.tobytes(),
        "behaviour_logp": logp.tobytes(),
        "versions": [{"version": version, "start": start, "end": end}],
        "stop": completion.stop,
        "text": completion.text,
    }
