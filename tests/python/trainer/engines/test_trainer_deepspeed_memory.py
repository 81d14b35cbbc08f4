"""
What makes training fit in memory, on two real DeepSpeed ranks: adapters, chunks of logits, packed
rows, offload.
"""

from __future__ import annotations

import pytest
from peft import PeftModel
from transformers import AutoModelForCausalLM

from holdfast_worker import weights
from test_trainer_adapter import LORA
from test_trainer_engine_deepspeed import (
    LENGTHS,
    TOKENS_MAX,
    broken,
    needs_deepspeed,
    script,
    torch_steps,
    whole,
)
from test_trainer_packing import supervised
from trainer_harness import OPTIMIZER, SUPERVISED_LOSS, Trainer, trajectory_batch

__all__ = ["needs_deepspeed", "script"]  # Fixtures.


def close(ours, theirs, rel=1e-5):
    for left, right in zip(ours, theirs, strict=True):
        assert left["loss"] == pytest.approx(right["loss"], rel=rel)
        assert left["grad_norm"] == pytest.approx(right["grad_norm"], rel=rel)


def steps_of(answers):
    return [step for answer in answers for step in answer["steps"]]


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_adapters_are_trained_as_by_torch_and_go_on_from_a_checkpoint_with_the_same_bits(
    script, tmp_path, zero
):
    first = (
        script()
        .create()
        .load()
        .train(0, 2)
        .save("v2")
        .train(2, 3, **broken(1e300))
        .rename("v3", "v2")
        .train(2, 4)
    )
    first.add("publish", version="v4", dir=str(tmp_path / "merged"), form="merged")
    first.add("publish", version="v4", dir=str(tmp_path / "adapter"), form="adapter")
    ranks = first.run(zero=zero, lora=LORA)
    answers = ranks[0]
    checkpoint = whole([rank[5] for rank in ranks])
    # The base is not in it: files of the adapter, its optimizer's state, and names.
    assert (
        sum(file["bytes"] for file in checkpoint["files"])
        < weights.file_entry(tmp_path, tmp_path / "model" / "model.safetensors")["bytes"]
    )
    assert answers[6]["steps"][0]["skipped"]["sequence"] == 7

    alone = Trainer(tmp_path / "torch", lora=LORA)
    alone.create()
    alone.load()
    batches = [trajectory_batch(alone.artifacts, LENGTHS, seed=k) for k in range(4)]
    taken = [
        alone.train(batch, between=(f"v{k}", f"v{k + 1}"), tokens_max=TOKENS_MAX)
        for k, batch in enumerate(batches)
    ]
    close(steps_of([*answers[3:5], *answers[8:10]]), steps_of(taken))

    opened = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(tmp_path / "model"), tmp_path / "adapter"
    )
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged").state_dict()
    for name, tensor in opened.merge_and_unload().state_dict().items():
        assert (merged[name] - tensor).abs().max() <= 1e-6

    second = script().load("v2", checkpoint).train(2, 4)
    second.add("publish", version="v4", dir=str(tmp_path / "again"), form="adapter")
    again = second.run(zero=zero, lora=LORA)[0]
    assert again[2:4] == answers[8:10]
    assert again[4]["digest"] == answers[10]["digest"] == answers[11]["digest"]


@pytest.mark.parametrize("zero", [2, 3])
def test_ranks_with_different_numbers_of_chunks_take_the_steps_of_one_torch_rank(
    script, tmp_path, zero
):
    answers = script().create().load().train(0, 2, logits_chunk_tokens=7).run(zero=zero)[0]
    close(steps_of(answers[3:5]), torch_steps(tmp_path / "torch", 2))


@pytest.mark.parametrize(
    ("zero", "offload"),
    [(2, {"optimizer": True, "parameters": False}), (3, {"optimizer": True, "parameters": True})],
)
def test_offload_takes_the_same_steps_skips_alike_and_goes_on_with_the_same_bits(
    script, tmp_path, zero, offload
):
    work = (
        script()
        .create()
        .load()
        .train(0, 1)
        .train(1, 2, **broken(1e300))
        .rename("v2", "v1")
        .train(1, 2)
        .save("v2")
    )
    ranks = work.train(2, 3).publish("v3", "one").run(zero=zero, offload=offload)
    answers = ranks[0]
    assert answers[2]["numerics"]["offload"] == offload
    assert answers[4]["steps"][0]["skipped"]["cause"] == "loss"
    close(steps_of([answers[3], answers[6], answers[8]]), torch_steps(tmp_path / "torch", 3))
    again = script().load("v2", whole([rank[7] for rank in ranks])).train(2, 3).publish("v3", "two")
    second = again.run(zero=zero, offload=offload)[0]
    assert second[2] == answers[8] and second[3]["digest"] == answers[9]["digest"]


def test_packed_rows_on_zero_3_take_the_steps_of_padded_ones_on_torch(script, tmp_path):
    work = script().create().load()
    batch, loss = work.artifacts.put_json(supervised()), work.artifacts.put_json(SUPERVISED_LOSS)
    train = {"from": "v0", "to": "v1", "batch": batch, "loss": loss, "optimizer": OPTIMIZER}
    answers = work.add("train", **train, micro_batch_tokens_max=96, packing=True).run(
        zero=3, packing=True
    )[0]
    assert answers[0]["numerics"]["packing"] is True
    alone = Trainer(tmp_path / "torch")
    alone.create()
    alone.load()
    padded = alone.train(supervised(), between=("v0", "v1"), loss=SUPERVISED_LOSS, tokens_max=96)[
        "steps"
    ]
    close(answers[3]["steps"], padded)
