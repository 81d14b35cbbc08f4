"""
The trainer's operations on the torch engine, in this process; what must survive a process, in
another one.
"""

from __future__ import annotations

import msgpack
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from holdfast_worker.loss.mismatch import NAMES as MISMATCH
from holdfast_worker.operation import BadDataError, OperationIO
from holdfast_worker.trainer.engines.engine import NonFiniteError
from holdfast_worker.wire.types import ArtifactRef
from torch_trainers import LENGTHS, published, steps
from trainer_harness import (
    OPTIMIZER,
    SUPERVISED_LOSS,
    Trainer,
    trajectory_batch,
)


def broken(trainer, advantage=1e300, seed=0):
    """
    A batch whose sequence 5 has an advantage that makes itself (1e300), the loss's sum or the norm
    not finite.
    """
    batch = trajectory_batch(trainer.artifacts, LENGTHS, seed=seed)
    batch["columns"]["advantage"]["values"][5] = advantage
    return batch


def independent_logp(model, trajectory, *, temperature):
    tokens = torch.tensor(np.frombuffer(trajectory["tokens"], "<i4").astype(np.int64))
    mask = np.frombuffer(trajectory["action_mask"], np.uint8)
    with torch.no_grad():
        table = (model(tokens[None]).logits[0] / temperature).log_softmax(-1)
    logp = table[:-1].gather(1, tokens[1:, None])[:, 0].numpy()
    return np.concatenate([[0.0], logp]) * mask


@pytest.mark.parametrize(
    "change",
    [{"lr": 0.01, "betas": [0.8, 0.9], "eps": 1e-6}, {"clip_grad_norm": 1e-3, "weight_decay": 0.5}],
)
def test_other_optimizer_settings_act_from_the_step_that_names_them(tmp_path, change):
    def trained(first, second):
        trainer = Trainer(tmp_path / f"{len(list(tmp_path.iterdir()))}")
        trainer.create()
        trainer.load(weight_decay=0.1)
        for versions, optimizer in ((("v0", "v1"), first), (("v1", "v2"), second)):
            batch = trajectory_batch(trainer.artifacts, LENGTHS, seed=int(versions[0][1:]))
            trainer.train(batch, between=versions, optimizer=optimizer)
        return trainer, published(trainer, "v2")["digest"]

    digests = {
        str(order): trained(*order)[1] for order in (({}, {}), ({}, change), (change, change))
    }
    assert len(set(digests.values())) == 3
    # A checkpoint of the prefix, loaded with the settings of what follows, gives the same.
    trainer = Trainer(tmp_path / "loaded")
    trainer.create()
    trainer.load(weight_decay=0.1)
    trainer.train(trajectory_batch(trainer.artifacts, LENGTHS, seed=0), between=("v0", "v1"))
    checkpoint = trainer.call("save", version="v1", dir=str(tmp_path / "checkpoint"))
    again = Trainer(tmp_path / "loaded")
    again.load("v1", checkpoint, **{"weight_decay": 0.1, **change})
    again.train(trajectory_batch(again.artifacts, LENGTHS, seed=1), between=("v1", "v2"))
    assert published(again, "v2")["digest"] == digests[str(({}, change))]


def test_weight_decay_cannot_be_turned_on_in_the_middle(tmp_path):
    trainer = Trainer(tmp_path)
    trainer.create()
    trainer.load(weight_decay=0.0)
    batch = trajectory_batch(trainer.artifacts, LENGTHS, seed=0)
    with pytest.raises(BadDataError, match="without weight decay: start a new run"):
        trainer.train(batch, between=("v0", "v1"), optimizer={"weight_decay": 0.1})
    assert trainer.worker.held == "v0"


def test_train_redone_from_the_base_repeats_loss_and_norm_bit_for_bit(trainer):
    first = steps(trainer, ["v0", "v1", "v2"])
    trainer.load()
    assert steps(trainer, ["v0", "v1", "v2"]) == first


def test_train_tells_every_micro_batch_of_a_step(trainer, monkeypatch):
    messages = []
    io = OperationIO.alone(
        str(trainer.artifacts.directory),
        happened=messages.append,
        send_progress=lambda message: messages.append((message.phase, message.done)),
    )
    monkeypatch.setattr("trainer_harness.io_of", lambda artifacts: io)
    trainer.train(trajectory_batch(trainer.artifacts, LENGTHS), between=("v0", "v1"), tokens_max=1)
    assert [entry for entry in messages if isinstance(entry, str)] == ["micro_batch"] * 12
    assert ("micro_batch", 12.0) in messages and messages[-1] == ("train", 1.0)


@pytest.mark.parametrize("packing", [False, True])
def test_train_on_a_batch_with_masked_sequences_is_train_on_the_others(trainer, packing):
    batch = trajectory_batch(trainer.artifacts, LENGTHS)
    masked = [
        1,
        4,
        5,
        6,
        7,
        10,
    ]  # One of the first group, the second group whole, one of the third.
    kept = [place for place in range(12) if place not in masked]
    advantage = batch["columns"]["advantage"]["values"]
    others = {
        **batch,
        "groups": [
            {**group, "samples": [s for s in range(4) if 4 * g + s in kept]}
            for g, group in enumerate(batch["groups"])
        ],
        "columns": {
            "advantage": {"kind": "sequence", "values": [advantage[place] for place in kept]}
        },
        "staleness": [0] * len(kept),
    }
    found = trainer.train({**batch, "masked": masked}, between=("v0", "v1"), packing=packing)[
        "steps"
    ]
    digest = published(trainer, "v1")["digest"]
    trainer.load()
    assert trainer.train(others, between=("v0", "v1"), packing=packing)["steps"] == found
    assert published(trainer, "v1", "others")["digest"] == digest
    assert found[0]["n_sequences"] == len(kept)


def test_train_gives_the_same_gradient_for_every_cut(trainer):
    batch = trajectory_batch(trainer.artifacts, LENGTHS)
    whole = trainer.train(batch, between=("v0", "v1"), tokens_max=4096)["steps"][0]
    trainer.load()
    single = trainer.train(batch, between=("v0", "v1"), tokens_max=1)["steps"][0]
    assert (whole["micro_batches"], single["micro_batches"]) == (1, 12)
    assert single["loss"] == pytest.approx(whole["loss"], rel=1e-5)
    assert single["grad_norm"] == pytest.approx(whole["grad_norm"], rel=1e-4)
    assert (whole["n_tokens"], whole["n_sequences"]) == (sum(LENGTHS[0]) * 3 - 36, 12)


def test_train_takes_one_step_per_update_and_follows_the_schedule(trainer):
    old = np.zeros(12).tolist()
    batch = trajectory_batch(trainer.artifacts, LENGTHS, updates=[[0], [1, 2]])
    batch["columns"]["old_logp"] = {"kind": "sequence", "values": old}
    taken = trainer.train(batch, between=("v0", "v1"))["steps"]
    assert [step["lr"] for step in taken] == [0.5 * OPTIMIZER["lr"], OPTIMIZER["lr"]]
    assert [step["n_sequences"] for step in taken] == [4, 8]


def test_train_needs_old_logp_once_a_batch_serves_several_updates(trainer):
    batch = trajectory_batch(trainer.artifacts, LENGTHS, updates=[[0], [1, 2]])
    with pytest.raises(BadDataError, match="'old_logp' and the batch has no such column"):
        trainer.train(batch, between=("v0", "v1"))
    assert published(trainer, "v0")["version"] == "v0"


def test_train_without_old_logp_reads_the_current_policy(trainer):
    step = trainer.train(trajectory_batch(trainer.artifacts, LENGTHS), between=("v0", "v1"))[
        "steps"
    ][0]
    assert step["metrics"] == {"policy/ratio": 1.0}


def test_train_measures_how_far_the_policy_is_from_the_sampler_and_takes_the_same_step(trainer):
    batch = trajectory_batch(trainer.artifacts, LENGTHS)
    plain = trainer.train(batch, between=("v0", "v1"))["steps"][0]
    trainer.load()
    clip = {"low": 0.2, "high": 0.2, "ratio": "token"}
    step = trainer.train(batch, between=("v0", "v1"), mismatch=clip)["steps"][0]
    measured = {name: step["metrics"].pop(name) for name in MISMATCH}
    assert step == plain
    assert measured["policy/mismatch_abs"] > 0 and measured["policy/mismatch_kl"] > 0
    assert 0 < measured["policy/clip_ratio"] <= 1  # An untrained model is far from what sampled.


def sampled(trainer, version, **sampling):
    """A batch whose slab says that `version` sampled it, far from what a new model computes."""
    batch = trajectory_batch(trainer.artifacts, LENGTHS)
    slab = msgpack.unpackb(trainer.io.read_artifact(ArtifactRef(**batch["groups"][0]["slab"])))
    ref = trainer.artifacts.put(
        msgpack.packb({**slab, "version": version, "sampling": {**slab["sampling"], **sampling}})
    )
    return {**batch, "groups": [{**group, "slab": ref} for group in batch["groups"]]}


CLIP = {"low": 0.2, "high": 0.2, "ratio": "token"}


def test_train_refuses_samples_that_the_same_version_would_not_have_sampled(trainer):
    says = r"differ by [34]\.\d+ per token \(policy/mismatch_abs\), more than 0\.5"
    with pytest.raises(BadDataError, match=says):
        trainer.train(sampled(trainer, "v0"), between=("v0", "v1"), mismatch=CLIP)
    assert trainer.worker.held is None
    trainer.load()
    plain = sampled(trainer, "v0", top_p=1, top_k=-1, min_p=0, temperature=1)
    with pytest.raises(BadDataError, match=says):
        trainer.train(plain, between=("v0", "v1"), mismatch=CLIP)


@pytest.mark.parametrize(
    "sampling",
    [{"top_p": 0.9}, {"top_k": 5}, {"min_p": 0.1}, {"temperature": 2}, {"repetition_penalty": 1.1}],
)
def test_train_takes_samples_of_a_cut_or_bent_distribution(trainer, sampling):
    batch = sampled(trainer, "v0", **sampling)
    step = trainer.train(batch, between=("v0", "v1"), mismatch=CLIP)["steps"][0]
    assert step["metrics"]["policy/mismatch_abs"] > 0.5


def test_train_takes_samples_of_a_different_version_and_asks_nothing_in_a_redo(trainer):
    for version, mismatch in (("v9", CLIP), ("v0", None)):
        batch = sampled(trainer, version)
        assert trainer.train(batch, between=("v0", "v1"), mismatch=mismatch)["version"] == "v1"
        trainer.load()


def test_train_asks_the_sampler_s_model_once_and_never_with_dropout(trainer):
    trainer.worker.trainer.agrees_with_sampler = True
    batch = sampled(trainer, "v0")
    step = trainer.train(batch, between=("v0", "v1"), mismatch=CLIP)["steps"][0]
    assert step["metrics"]["policy/mismatch_abs"] > 0.5
    trainer.load()
    trainer.worker.trainer.agrees_with_sampler = False
    trainer.worker.trainer.has_dropout = True
    assert trainer.train(batch, between=("v0", "v1"), mismatch=CLIP)["version"] == "v1"


def test_supervised_rows_have_no_sampler_to_be_measured_by(trainer):
    row = {"row_id": "0", "prompt": "copy 1 =", "completion": "1", "columns": {}}
    batch = {"kind": "supervised", "rows": [row], "temperature": 1, "coef": {}, "updates": [[0]]}
    clip = {"low": 0.2, "high": 0.2, "ratio": "token"}
    step = trainer.train(batch, between=("v0", "v1"), loss=SUPERVISED_LOSS, mismatch=clip)["steps"][
        0
    ]
    assert step["metrics"] == {}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("advantage", "cause", "node"),
    [
        (1e300, "loss", "4 (advantage)"),
        (3e38, "loss", "4 (advantage)"),
        (1e30, "grad_norm", "logp"),
    ],
)
def test_a_step_that_is_not_finite_is_skipped_and_leaves_every_bit_as_it_was(
    tmp_path, dtype, advantage, cause, node
):
    trainer = Trainer(tmp_path, dtype=dtype)
    trainer.create()
    trainer.load()
    steps(trainer, ["v0", "v1"])
    before = published(trainer, "v1")["digest"]
    skipped = trainer.train(broken(trainer, advantage, seed=7), between=("v1", "x1"))["steps"][0]
    assert published(trainer, "x1")["digest"] == before
    # Every token of sequence 5 is as bad: the first is named.
    assert skipped["skipped"] == {"cause": cause, "node": node, "sequence": 5, "token": 3}
    assert skipped[cause] is None and skipped["lr"] == OPTIMIZER["lr"]

    batches = [trajectory_batch(trainer.artifacts, LENGTHS, seed=k) for k in (1, 2)]
    after = [
        trainer.train(batch, between=two)["steps"]
        for batch, two in zip(batches, [("x1", "v2"), ("v2", "v3")])
    ]
    digest = published(trainer, "v3")["digest"]
    trainer.load()
    steps(
        trainer, ["v0", "v1"]
    )  # And without the skipped one: the same steps, the same rates, the same weights.
    assert [
        trainer.train(b, between=t)["steps"] for b, t in zip(batches, [("v1", "v2"), ("v2", "v3")])
    ] == after
    assert published(trainer, "v3")["digest"] == digest


def test_steps_skipped_in_a_row_fail_at_the_limit_and_name_the_token(trainer, tmp_path):
    for before, after in (("v0", "v1"), ("v1", "v2")):
        trainer.train(broken(trainer), between=(before, after), non_finite_max=3)
    checkpoint = trainer.call("save", version="v2", dir=str(tmp_path / "checkpoint"))
    named = r"non_finite: .* first at node \d+ \(advantage\), sequence 5, token 3 of the step. 3 consecutive step\(s\)"
    for _ in range(2):  # The version is held as it was, and trying again gives the same.
        with pytest.raises(NonFiniteError, match=named):
            trainer.train(broken(trainer), between=("v2", "v3"), non_finite_max=3)
    trainer.load("v2", checkpoint)
    with pytest.raises(NonFiniteError, match=named):
        trainer.train(broken(trainer), between=("v2", "v3"), non_finite_max=3)
    trainer.train(
        trajectory_batch(trainer.artifacts, LENGTHS), between=("v2", "v3"), non_finite_max=3
    )
    for before, after in (
        ("v3", "v4"),
        ("v4", "v5"),
    ):  # A step that is taken begins the count anew.
        assert (
            "skipped"
            in trainer.train(broken(trainer), between=(before, after), non_finite_max=3)["steps"][0]
        )


def test_a_redo_without_a_limit_takes_the_skipped_steps_again(trainer):
    first = [
        trainer.train(broken(trainer), between=(f"v{k}", f"v{k + 1}"), non_finite_max=9)
        for k in range(5)
    ]
    trainer.load()
    assert [
        trainer.train(broken(trainer), between=(f"v{k}", f"v{k + 1}")) for k in range(5)
    ] == first


def test_train_learns_supervised_rows(trainer):
    rows = [
        {"row_id": str(place), "prompt": f"copy {place} =", "completion": f"{place}", "columns": {}}
        for place in range(8)
    ]
    batch = {
        "kind": "supervised",
        "rows": rows,
        "temperature": 1,
        "coef": {},
        "updates": [list(range(8))] * 16,
    }
    taken = trainer.train(batch, between=("v0", "v1"), loss=SUPERVISED_LOSS)["steps"]
    assert taken[0]["n_tokens"] == 16
    assert taken[-1]["loss"] < taken[0]["loss"] / 2


def test_gradient_checkpointing_changes_no_bit(tmp_path):
    results = []
    for checkpointing in (False, True):
        trainer = Trainer(tmp_path / str(checkpointing), gradient_checkpointing=checkpointing)
        trainer.create()
        trainer.load()
        results.append(steps(trainer, ["v0", "v1"]))
    assert results[0] == results[1]


def test_score_is_the_models_log_probability_at_the_temperature(trainer):
    steps(trainer, ["v0", "v1"])
    reference = trainer.directory / "model"
    batch = trajectory_batch(trainer.artifacts, [[9, 5], [7]], temperature=0.7)
    answer = trainer.call(
        "score",
        version="v1",
        batch=trainer.artifacts.put_json(batch),
        columns=["old_logp", "ref_logp"],
        reference_path=str(reference),
        micro_batch_tokens_max=12,
    )
    assert answer == {"columns": ["old_logp", "ref_logp"]}
    slab = msgpack.unpackb(trainer.io.read_artifact(ArtifactRef(**batch["groups"][0]["slab"])))
    trajectories = [trajectory for group in slab["groups"] for trajectory in group["trajectories"]]
    publication = published(trainer, "v1")["dir"]
    for blob, path in zip(trainer.io.blobs, (publication, reference)):
        values = [np.frombuffer(value, "<f4") for value in msgpack.unpackb(blob)["values"]]
        model = AutoModelForCausalLM.from_pretrained(path)
        for trajectory, value in zip(trajectories, values, strict=True):
            assert value == pytest.approx(
                independent_logp(model, trajectory, temperature=0.7), abs=1e-5
            )


def test_a_reference_that_is_offloaded_between_uses_says_the_same(trainer):
    batch = trainer.artifacts.put_json(trajectory_batch(trainer.artifacts, LENGTHS))
    said = []
    for offload in (False, True, True):
        trainer.call(
            "score",
            version="v0",
            batch=batch,
            columns=["ref_logp"],
            reference_path=str(trainer.directory / "model"),
            reference_offload=offload,
            micro_batch_tokens_max=64,
        )
        said.append(trainer.io.blobs)
    assert said[0] == said[1] == said[2]
    assert {
        parameter.device.type for parameter in trainer.worker.trainer.references.model.parameters()
    } == {"cpu"}
