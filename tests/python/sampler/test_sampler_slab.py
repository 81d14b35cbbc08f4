"""The bytes of a slab."""

from __future__ import annotations

import msgpack
import numpy as np

from holdfast_worker.sampler.slab import Completion, PromptGroup, pack_slab

SAMPLING = {"temperature": 1, "top_p": 1, "top_k": -1, "tokens_max": 4, "stop": []}


def group(*lengths: int) -> PromptGroup:
    """Completions of so many tokens each, after a prompt of two."""
    completions = [
        Completion(
            tokens=np.arange(length, dtype=np.int32),
            logp=np.full(length, -0.5, dtype=np.float32),
            stop="length",
            text="t",
        )
        for length in lengths
    ]
    return PromptGroup(7, "row7", "hi", [40, 41], completions)


def test_a_trajectory_holds_prompt_and_completion_and_marks_what_was_sampled() -> None:
    slab = msgpack.unpackb(pack_slab("s", [group(3)], version="v1", sampling=SAMPLING))
    (packed,) = slab["groups"]
    (one,) = packed["trajectories"]
    assert (slab["slab"], slab["version"], slab["sampling"]) == ("s", "v1", SAMPLING)
    assert (packed["draw"], packed["row_id"], packed["prompt_text"]) == (7, "row7", "hi")
    assert np.frombuffer(one["tokens"], "<i4").tolist() == [40, 41, 0, 1, 2]
    assert list(one["action_mask"]) == [0, 0, 1, 1, 1]
    assert np.frombuffer(one["behaviour_logp"], "<f4").tolist() == [0, 0, -0.5, -0.5, -0.5]
    assert one["versions"] == [{"version": "v1", "start": 2, "end": 5}]


def test_samples_are_numbered_in_order_and_may_be_empty() -> None:
    slab = msgpack.unpackb(pack_slab("s", [group(2, 0)], version="v1", sampling=SAMPLING))
    first, second = slab["groups"][0]["trajectories"]
    assert (first["sample"], second["sample"]) == (0, 1)
    assert second["versions"] == [{"version": "v1", "start": 2, "end": 2}]


def test_the_same_groups_give_the_same_bytes() -> None:
    slabs = {pack_slab("s", [group(3, 1)], version="v1", sampling=SAMPLING) for _ in range(2)}
    assert len(slabs) == 1
