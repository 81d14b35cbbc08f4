"""
The trainer's operations on DeepSpeed: two real ranks over gloo, against the torch engine and across
a restart.
"""

from __future__ import annotations

import msgpack
import numpy as np
import pytest

from holdfast_worker import weights
from holdfast_worker.trainer.engines.loss_scale import START
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import FileEntry
from trainer_harness import (
    OPTIMIZER,
    POLICY_LOSS,
    Artifacts,
    Trainer,
    deepspeed_python,
    run_ranks,
    trajectory_batch,
)

LENGTHS = [[16, 9, 12, 7]] * 5
TOKENS_MAX = 100  # An odd number of micro-batches, so that one rank runs a filler.


@pytest.fixture(autouse=True)
def needs_deepspeed():
    deepspeed_python()


class Script:
    """The operations of a run, as every rank gets them."""

    def __init__(self, directory, artifacts):
        self.directory, self.artifacts = directory, artifacts
        self.tasks = []

    def add(self, op, **args):
        self.tasks.append({"op": op, "args": args})
        return self

    def create(self):
        return self.add(
            "create_model", recipe="tiny_qwen", seed=1, dir=str(self.directory / "model")
        )

    def load(self, version="v0", checkpoint=None, optimizer=OPTIMIZER):
        model = str(self.directory / "model")
        return self.add(
            "load", version=version, model_path=model, optimizer=optimizer, checkpoint=checkpoint
        )

    def rename(self, before, after):
        """What the ranks hold is called `after` from here on: other batches may follow."""
        return self.add("rename", before=before, after=after)

    def train(
        self,
        start,
        end,
        optimizer=OPTIMIZER,
        non_finite_max=None,
        logits_chunk_tokens=None,
        **columns,
    ):
        options = {"non_finite_max": non_finite_max, "logits_chunk_tokens": logits_chunk_tokens}
        for k in range(start, end):
            batch = trajectory_batch(self.artifacts, LENGTHS, seed=k)
            batch["columns"].update(columns)
            self.add(
                "train",
                **{"from": f"v{k}", "to": f"v{k + 1}"},
                batch=self.artifacts.put_json(batch),
                loss=self.artifacts.put_json(POLICY_LOSS),
                optimizer=optimizer,
                micro_batch_tokens_max=TOKENS_MAX,
                **{name: value for name, value in options.items() if value is not None},
            )
        return self

    def publish(self, version, name):
        return self.add("publish", version=version, dir=str(self.directory / name))

    def save(self, version):
        return self.add("save", version=version, dir=str(self.directory / "checkpoint"))

    def run(self, ranks=2, **spec):
        return run_ranks(self.directory, self.tasks, artifacts=self.artifacts, ranks=ranks, **spec)


@pytest.fixture
def script(tmp_path):
    artifacts = Artifacts(tmp_path / "artifacts")
    return lambda: Script(tmp_path, artifacts)


def whole(saved):
    """The checkpoint that the engine commits: the files of all ranks."""
    return {**saved[0], "files": [file for part in saved for file in part["files"]]}


@pytest.mark.parametrize("zero", [2, 3])
def test_load_frees_the_old_model_before_the_new_one_comes(script, zero):
    answers = (
        script()
        .create()
        .load()
        .train(0, 1)
        .load()
        .train(0, 1)
        .load()
        .add("count_models")
        .run(zero=zero)
    )
    assert [rank[-1] for rank in answers] == [{"models": 1}] * 2


def torch_steps(directory, count, *, dtype="float32", **columns):
    trainer = Trainer(directory, dtype=dtype)
    trainer.create()
    trainer.load()
    taken = []
    for k in range(count):
        batch = trajectory_batch(trainer.artifacts, LENGTHS, seed=k)
        batch["columns"].update(columns)
        between = (f"v{k}", f"v{k + 1}")
        taken += trainer.train(batch, between=between, tokens_max=TOKENS_MAX)["steps"]
    return taken


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_zero_2_goes_on_from_a_checkpoint_in_new_processes_with_the_same_bits(
    script, tmp_path, dtype
):
    first = (
        script()
        .create()
        .load()
        .train(0, 3)
        .save("v3")
        .train(3, 6)
        .publish("v6", "one")
        .run(zero=2, dtype=dtype)
    )
    saved = [answers[6] for answers in first]
    checkpoint = whole(saved)
    assert {file["path"] for file in checkpoint["files"]} == {
        path.relative_to(checkpoint["dir"]).as_posix()
        for path in weights.list_files(checkpoint["dir"])
    }
    assert sum("rng_rank_" in file["path"] for file in checkpoint["files"]) == 2
    assert [any("pp_rank_1_" in file["path"] for file in part["files"]) for part in saved] == [
        False,
        True,
    ]
    assert checkpoint["digest"] == weights.digest_of_directory(tmp_path / "checkpoint" / "hf")

    second = (
        script().load("v3", checkpoint).train(3, 6).publish("v6", "two").run(zero=2, dtype=dtype)
    )
    assert second[0][2:5] == first[0][7:10]
    assert second[0][5]["digest"] == first[0][10]["digest"]
    assert [answers[2:6] for answers in second] == [second[0][2:6]] * 2


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_two_ranks_take_the_steps_of_one_torch_rank(script, tmp_path, zero):
    answers = script().create().load().train(0, 3).publish("v3", "out").run(zero=zero)[0]
    expected = torch_steps(tmp_path / "torch", 3)
    for ours, theirs in zip([answer["steps"][0] for answer in answers[3:6]], expected, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
        assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=1e-5)
        assert (ours["lr"], ours["n_tokens"], ours["n_sequences"]) == (
            theirs["lr"],
            theirs["n_tokens"],
            theirs["n_sequences"],
        )
    assert answers[6]["digest"] == weights.digest_of_directory(tmp_path / "out")
    assert answers[6]["tensors"] == weights.manifest_of_directory(tmp_path / "out")[0]


OPTIMIZER_OFFLOADED = {"optimizer": True, "parameters": False}
OFFLOADED = {"optimizer": True, "parameters": True}


@pytest.mark.parametrize(
    ("zero", "offload"),
    [
        (0, None),
        (1, None),
        (1, OPTIMIZER_OFFLOADED),
        (2, None),
        (2, OPTIMIZER_OFFLOADED),
        (3, None),
        (3, OFFLOADED),
    ],
)
def test_two_ranks_in_float16_take_the_steps_of_one_torch_rank_whose_gradients_overflow(
    script, tmp_path, zero, offload
):
    def advantage(size):
        values = [(-1) ** place * size for place in range(20)]
        return {"advantage": {"kind": "sequence", "values": values}}

    work = script().create().load().train(0, 2, **advantage(300.0))
    # At no scale: skipped. The step after it has nothing of it.
    work.train(2, 3, **advantage(1e30)).rename("v3", "v2").train(2, 3, **advantage(300.0))
    spec = {} if offload is None else {"offload": offload}
    answers = work.run(zero=zero, dtype="float16", **spec)
    steps = [answer["steps"][0] for answer in answers[0] if "steps" in answer]
    assert [one.get("skipped", {}).get("cause") for one in steps] == [None, None, "grad_norm", None]
    expected = torch_steps(tmp_path / "torch", 3, dtype="float16", **advantage(300.0))
    for ours, theirs in zip([*steps[:2], steps[3]], expected, strict=True):
        # A rank's gradients are twice as large before they are averaged.
        assert theirs["loss_scale"] / ours["loss_scale"] in (1, 2) and ours["loss_scale"] < START
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-2, abs=1e-2)
        assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=2e-2)
    assert answers[1][3:] == answers[0][3:]


def test_zero_2_refuses_a_flipped_shard_on_every_rank_and_scores_on_both(script, tmp_path):
    batch = trajectory_batch(Artifacts(tmp_path / "artifacts"), LENGTHS, seed=9)
    score = {
        "version": "v1",
        "batch": Artifacts(tmp_path / "artifacts").put_json(batch),
        "columns": ["old_logp", "ref_logp"],
        "reference_path": str(tmp_path / "model"),
        "micro_batch_tokens_max": TOKENS_MAX,
    }
    first = (
        script()
        .create()
        .load()
        .train(0, 1)
        .save("v1")
        .add("score", **score)
        .publish("v1", "out")
        .run(zero=2)
    )
    values = [msgpack.unpackb(bytes.fromhex(blob))["values"] for blob in first[0][5]["blobs"]]
    assert [len(column) for column in values] == [20, 20]
    alone = torch_scores(tmp_path, score)
    for ours, theirs in zip(values, alone, strict=True):
        for left, right in zip(ours, theirs, strict=True):
            assert np.frombuffer(left, "<f4") == pytest.approx(
                np.frombuffer(right, "<f4"), abs=1e-5
            )

    checkpoint = whole([answers[4] for answers in first])
    name = next(file["path"] for file in checkpoint["files"] if "pp_rank_1_" in file["path"])
    data = bytearray((tmp_path / "checkpoint" / name).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "checkpoint" / name).write_bytes(data)
    second = script().load("v1", checkpoint).run(zero=2)
    for answers in second:
        assert answers[1]["error"] == "BadDataError"
        assert f"'{name}' is not the recorded one" in answers[1]["message"]


def broken(advantage):
    """
    Columns that make the loss (1e300) or the norm of its gradient (1e30) not finite, by sequence 7.
    """
    return {"advantage": {"kind": "sequence", "values": [0.0] * 7 + [advantage] + [0.0] * 12}}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_no_rank_takes_a_step_that_is_not_finite_and_the_next_ones_are_as_without_it(
    script, zero, dtype
):
    work = script().create().load().train(0, 3).publish("v3", "sound")
    work.load().train(0, 1).publish("v1", "before").train(1, 2, **broken(1e300)).publish(
        "v2", "after"
    )
    work.rename("v2", "v1")
    # ZeRO 3 takes the norm in float64: what overflows a square of float32 elsewhere is a number
    # there, and clipped.
    cause, other = ("loss", 3e38) if zero == 3 else ("grad_norm", 1e30)
    work.train(1, 2).train(2, 3, **broken(other)).rename("v3", "v2").train(2, 3).publish(
        "v3", "again"
    )
    ranks = work.run(zero=zero, dtype=dtype)
    answers = ranks[0]
    assert [rank[3:] for rank in ranks] == [answers[3:]] * 2
    sound, loss, norm = answers[3:6], answers[10]["steps"][0], answers[14]["steps"][0]
    assert loss["skipped"] == {"cause": "loss", "node": "4 (advantage)", "sequence": 7, "token": 3}
    assert {**norm["skipped"], "node": None} == {
        "cause": cause,
        "node": None,
        "sequence": 7,
        "token": 3,
    }
    assert (loss["loss"], loss["grad_norm"], norm["grad_norm"]) == (None, None, None)
    assert answers[11]["digest"] == answers[9]["digest"]
    assert [answers[8], answers[13], answers[16]] == sound  # Losses, norms and learning rates.
    assert answers[17]["digest"] == answers[6]["digest"]


def test_a_checkpoint_of_a_skipped_step_goes_on_as_if_it_had_not_been(script):
    sound = script().create().load().train(0, 3).publish("v3", "sound").run(zero=2)[0]
    first = script().load().train(0, 1).train(1, 2, **broken(1e300)).save("v2").run(zero=2)
    work = (
        script()
        .load("v2", whole([rank[4] for rank in first]))
        .rename("v2", "v1")
        .train(1, 3)
        .publish("v3", "on")
    )
    again = work.run(zero=2)[0]
    assert again[3:5] == sound[4:6] and again[5]["digest"] == sound[6]["digest"]


def test_steps_skipped_in_a_row_fail_on_every_rank_at_the_limit_and_the_version_stays_held(script):
    work = (
        script().create().load().train(0, 2, non_finite_max=2, **broken(1e300)).publish("v1", "out")
    )
    for answers in work.run(zero=2):
        assert "skipped" in answers[3]["steps"][0]
        assert answers[4]["error"] == "NonFiniteError"
        named = (
            "first at node 4 (advantage), sequence 7, token 3 of the step. 2 consecutive step(s)"
        )
        assert named in answers[4]["message"]
        assert answers[5]["version"] == "v1"


def torch_scores(directory, score):
    trainer = Trainer(directory)
    trainer.call(
        "load",
        version="v1",
        model_path=str(directory / "out"),
        optimizer=OPTIMIZER,
        checkpoint=None,
    )
    trainer.call("score", **score)
    return [msgpack.unpackb(blob)["values"] for blob in trainer.io.blobs]


@pytest.mark.parametrize(("zero", "before", "after"), [(1, 2, 1), (2, 2, 1), (3, 1, 2)])
def test_a_checkpoint_goes_on_with_another_number_of_ranks(script, tmp_path, zero, before, after):
    """
    The weights keep their bits, and every later step gives the same to rounding: Adam's step count
    is right.
    """
    first = script().create().load().train(0, 3).save("v3").train(3, 6).run(ranks=before, zero=zero)
    checkpoint = whole([answers[6] for answers in first])
    second = (
        script()
        .load("v3", checkpoint)
        .publish("v3", "kept")
        .train(3, 6)
        .run(ranks=after, zero=zero)
    )
    assert second[0][1]["numerics"]["world_size"] == after
    assert second[0][2]["digest"] == checkpoint["digest"]
    for ours, theirs in zip(second[0][3:6], first[0][7:10], strict=True):
        for name in ("loss", "grad_norm"):
            assert ours["steps"][0][name] == pytest.approx(theirs["steps"][0][name], rel=1e-5)
    assert not list(tmp_path.glob(".universal*"))
    files = decode(list[FileEntry], checkpoint["files"])
    assert weights.verify_files(checkpoint["dir"], files) is None


def test_other_optimizer_settings_act_alike_in_the_middle_and_at_a_load(script):
    """DeepSpeed brings back the clip that a state was saved with: a fork asks for another."""
    other = {**OPTIMIZER, "lr": 0.01, "clip_grad_norm": 1e-3}
    first = (
        script()
        .create()
        .load()
        .train(0, 1)
        .save("v1")
        .train(1, 2, other)
        .publish("v2", "middle")
        .run(zero=2)
    )
    checkpoint = whole([rank[4] for rank in first])
    again = (
        script()
        .load("v1", checkpoint, other)
        .train(1, 2, other)
        .publish("v2", "loaded")
        .run(zero=2)
    )
    before = script().load("v1", checkpoint).train(1, 2).publish("v2", "before").run(zero=2)
    assert again[0][3]["digest"] == first[0][6]["digest"] != before[0][3]["digest"]
