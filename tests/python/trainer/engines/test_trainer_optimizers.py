"""Optimizers besides AdamW: which parameters each steps, and that their state loses no bit."""

from __future__ import annotations

import os
import sys

import pytest
import torch

from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.engines.engine_torch import TorchEngine
from holdfast_worker.trainer.engines.optimizers import optimizer_of
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import Optimizer
from torch_trainers import LENGTHS, published, steps
from trainer_harness import (
    OPTIMIZER,
    POLICY_LOSS,
    Artifacts,
    Trainer,
    run_ranks,
    trajectory_batch,
)

NAMES = ["muon", "adafactor", "adamw_8bit"]
LORA = {
    "rank": 4,
    "alpha": 8,
    "dropout": 0,
    "targets": "all_linear",
    "quantize": None,
    "publish": "merged",
}
# In CI, which has an hour, only the first.
RANKS = [("muon", "bfloat16"), ("adafactor", "float32"), ("adamw_8bit", "bfloat16")]
WHOLE = os.environ.get("CI") != "true" or os.environ.get("HOLDFAST_TEST_WHOLE") == "true"


class Tiny(torch.nn.Module):
    """Embeddings, a hidden matrix with a bias, a norm, and a head."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.embed = torch.nn.Embedding(5, 4)
        self.hidden = torch.nn.Linear(4, 4)
        self.norm = torch.nn.LayerNorm(4)
        self.head = torch.nn.Linear(4, 5, bias=False)

    def get_input_embeddings(self):
        return self.embed

    def get_output_embeddings(self):
        return self.head

    def learn(self, optimizer, count):
        for k in range(count):
            torch.manual_seed(10 + k)
            for parameter in self.parameters():
                parameter.grad = torch.randn_like(parameter)
            optimizer.step()


def stepped(model, **settings):
    optimizer = decode(Optimizer, {**OPTIMIZER, "weight_decay": 0.0, **settings})
    return optimizer_of(model, optimizer, fused=False, master=lambda parameter: parameter)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_muon_steps_hidden_matrices_and_adamw_the_rest(weight_decay):
    ours, theirs = Tiny(), Tiny()
    ours.learn(stepped(ours, name="muon", weight_decay=weight_decay), 3)
    hidden = [theirs.hidden.weight]
    matrices = [theirs.embed.weight, theirs.head.weight]
    others = [theirs.hidden.bias, theirs.norm.weight, theirs.norm.bias]
    muon = torch.optim.Muon(
        hidden, lr=1e-3, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"
    )
    adamw = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": weight_decay},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=1e-3,
    )
    for k in range(3):
        torch.manual_seed(10 + k)
        for parameter in theirs.parameters():
            parameter.grad = torch.randn_like(parameter)
        muon.step()
        adamw.step()
    for name, expected in theirs.named_parameters():
        assert torch.equal(dict(ours.named_parameters())[name], expected), name


def test_adafactor_keeps_rows_and_columns_of_a_matrix():
    ours, theirs = Tiny(), Tiny()
    optimizer = stepped(ours, name="adafactor")
    ours.learn(optimizer, 3)
    theirs.learn(torch.optim.Adafactor(theirs.parameters(), lr=1e-3), 3)
    for name, expected in theirs.named_parameters():
        assert torch.equal(dict(ours.named_parameters())[name], expected), name
    assert sorted(optimizer.state[ours.hidden.weight]) == ["col_var", "row_var", "step"]


class Wide(Tiny):
    """Whose embeddings and hidden matrix are large enough for moments of 8 bits."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(100, 64)
        self.hidden = torch.nn.Linear(64, 100)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_adamw_8bit_is_bitsandbytes_with_embeddings_of_32_bits(weight_decay):
    from bitsandbytes.optim import AdamW, AdamW8bit

    ours, theirs = Wide(), Wide()
    optimizer = stepped(ours, name="adamw_8bit", weight_decay=weight_decay)
    ours.learn(optimizer, 3)
    vectors = [p for p in theirs.parameters() if p.dim() == 1]
    eight = [
        {"params": [theirs.hidden.weight, theirs.head.weight], "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    whole = [{"params": [theirs.embed.weight], "weight_decay": weight_decay}]
    both = (AdamW8bit(eight, lr=1e-3), AdamW(whole, lr=1e-3))
    for k in range(3):
        torch.manual_seed(10 + k)
        for parameter in theirs.parameters():
            parameter.grad = torch.randn_like(parameter)
        for one in both:
            one.step()
    for name, expected in theirs.named_parameters():
        assert torch.equal(dict(ours.named_parameters())[name], expected), name
    kinds = {name: optimizer.state[p]["state1"].dtype for name, p in ours.named_parameters()}
    assert kinds["hidden.weight"] == torch.uint8
    assert kinds["embed.weight"] == kinds["head.weight"] == torch.float32


def test_adamw_8bit_without_bitsandbytes_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim", None)
    with pytest.raises(BadDataError, match="adamw_8bit because bitsandbytes .* or use adamw"):
        stepped(Tiny(), name="adamw_8bit")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "spec", [{}, {"dtype": "bfloat16"}, {"lora": LORA}], ids=["float32", "bfloat16", "lora"]
)
def test_training_from_a_checkpoint_gives_the_bits_of_training_on(tmp_path, name, spec):
    trainer = Trainer(tmp_path, **spec)
    trainer.create()
    trainer.load(name=name)
    steps(trainer, ["v0", "v1", "v2"])
    checkpoint = trainer.call("save", version="v2", dir=str(tmp_path / "checkpoint"))
    expected = steps(trainer, ["v2", "v3", "v4"])
    digest = published(trainer, "v4")["digest"]
    # The state matters: without it the same steps give different bits.
    trainer.load("v2", checkpoint, name=name)
    trainer.worker.engine.optimizer.state.clear()
    steps(trainer, ["v2", "v3", "v4"])
    assert published(trainer, "v4", "stateless")["digest"] != digest
    again = Trainer(tmp_path, **spec)
    again.load("v2", checkpoint, name=name)
    assert steps(again, ["v2", "v3", "v4"]) == expected
    assert published(again, "v4", "again")["digest"] == digest


@pytest.mark.parametrize("name", NAMES)
def test_other_optimizers_learn_something_else_than_adamw(tmp_path, name):
    found = []
    for k, settings in enumerate(({}, {"name": name})):
        trainer = Trainer(tmp_path / str(k))
        trainer.create()
        trainer.load(**settings)
        steps(trainer, ["v0", "v1"])
        found.append(published(trainer, "v1")["digest"])
    assert found[0] != found[1]


@pytest.mark.parametrize("name", NAMES)
def test_settings_change_in_the_middle_as_in_a_fork(tmp_path, name):
    change = {"lr": 0.01, "clip_grad_norm": 1e-3, "weight_decay": 0.5}
    trainer = Trainer(tmp_path)
    trainer.create()
    trainer.load(name=name, weight_decay=0.1)
    steps(trainer, ["v0", "v1"])
    checkpoint = trainer.call("save", version="v1", dir=str(tmp_path / "checkpoint"))
    steps(trainer, ["v1", "v2"], optimizer=change)
    digest = published(trainer, "v2")["digest"]
    trainer.load("v1", checkpoint, name=name, **change)
    steps(trainer, ["v1", "v2"])
    assert published(trainer, "v2", "again")["digest"] == digest


def test_the_state_of_one_optimizer_is_refused_to_another(trainer, tmp_path):
    steps(trainer, ["v0", "v1"])
    checkpoint = trainer.call("save", version="v1", dir=str(tmp_path / "checkpoint"))
    message = "with optimizer muon because the state is that of adamw: start a new run"
    with pytest.raises(BadDataError, match=message):
        trainer.load("v1", checkpoint, name="muon")
    trainer.load("v1", checkpoint)
    with pytest.raises(BadDataError, match=message):
        steps(trainer, ["v1", "v2"], optimizer={"name": "muon"})


def test_state_bytes_are_those_of_the_state(trainer):
    trainer.load(name="adafactor")
    steps(trainer, ["v0", "v1"])
    engine = trainer.worker.engine
    assert isinstance(engine, TorchEngine)
    matrix = engine.model.model.layers[0].mlp.up_proj.weight
    rows_and_columns = sum(matrix.shape) * 4
    state = engine.optimizer.state[matrix]
    assert sum(state[key].nbytes for key in ("row_var", "col_var")) == rows_and_columns
    assert engine.state_bytes() < 4 * sum(p.numel() for p in engine.model.parameters())


@pytest.mark.parametrize(("name", "dtype"), RANKS if WHOLE else RANKS[:1])
def test_two_ranks_without_zero_take_the_steps_of_one_and_lose_no_bit(tmp_path, name, dtype):
    artifacts = Artifacts(tmp_path / "artifacts")
    optimizer = {**OPTIMIZER, "name": name}
    model = str(tmp_path / "model")

    def load(version, checkpoint=None):
        args = {"version": version, "model_path": model, "checkpoint": checkpoint}
        return {"op": "load", "args": {**args, "optimizer": optimizer}}

    def train(k):
        batch = artifacts.put_json(trajectory_batch(artifacts, LENGTHS, seed=k))
        loss = artifacts.put_json(POLICY_LOSS)
        args = {"from": f"v{k}", "to": f"v{k + 1}", "batch": batch, "loss": loss}
        return {
            "op": "train",
            "args": {**args, "optimizer": optimizer, "micro_batch_tokens_max": 64},
        }

    create = {"op": "create_model", "args": {"recipe": "tiny_qwen", "seed": 1, "dir": model}}
    save = {"op": "save", "args": {"version": "v2", "dir": str(tmp_path / "checkpoint")}}

    def end(name):
        return {"op": "publish", "args": {"version": "v3", "dir": str(tmp_path / name)}}

    script = [create, load("v0"), train(0), train(1), save, train(2), end("one")]
    first = run_ranks(tmp_path, script, artifacts=artifacts, ranks=2, dtype=dtype)
    saved = [answers[-3] for answers in first]
    checkpoint = {**saved[0], "files": [file for part in saved for file in part["files"]]}
    script = [load("v2", checkpoint), train(2), end("two")]
    second = run_ranks(tmp_path, script, artifacts=artifacts, ranks=2, dtype=dtype)
    assert second[0][-2:-1] == first[0][-2:-1]
    assert second[0][-1]["digest"] == first[0][-1]["digest"]

    alone = Trainer(tmp_path / "alone", dtype=dtype)
    alone.create()
    alone.load(name=name)
    expected = steps(alone, ["v0", "v1", "v2", "v3"])
    found = [step for answer in first[0] if "steps" in answer for step in answer["steps"]]
    rel = 1e-5 if dtype == "float32" else 2e-2
    for ours, theirs in zip(found, expected, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=rel)
        assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=rel)
