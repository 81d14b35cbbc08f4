"""Adapters in place of weights: trained, saved, resumed, merged and referred to."""

from __future__ import annotations

import json

import msgpack
import numpy as np
import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from holdfast_worker import weights
from holdfast_worker.operation import BadDataError
from trainer_harness import OPTIMIZER, POLICY_LOSS, Trainer, run_ranks, trajectory_batch

LENGTHS = [[16, 9, 12, 7]] * 2
LORA = {
    "rank": 4,
    "alpha": 8,
    "dropout": 0,
    "targets": "all_linear",
    "quantize": None,
    "publish": "merged",
}


def adapted(directory, *, steps=0, recipe="tiny_qwen", **spec):
    trainer = Trainer(directory, **{"lora": LORA, **spec})
    trainer.create(recipe)
    trainer.load()
    train(trainer, 0, steps)
    return trainer


def train(trainer, start, end):
    taken = []
    for k in range(start, end):
        batch = trajectory_batch(trainer.artifacts, LENGTHS, seed=k)
        taken += trainer.train(batch, between=(f"v{k}", f"v{k + 1}"))["steps"]
    return taken


def published(trainer, version, form):
    return trainer.call("publish", version=version, dir=str(trainer.directory / form), form=form)


def logits_of(model):
    with torch.no_grad():
        return model(torch.arange(6, 38)[None]).logits


@pytest.mark.parametrize("recipe", ["tiny_qwen", "tiny_qwen_untied"])
def test_only_adapters_are_trained_and_a_new_one_changes_nothing(tmp_path, recipe):
    trainer = adapted(tmp_path, recipe=recipe)
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    module = trainer.worker.engine.module
    assert torch.equal(logits_of(module), logits_of(base))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    train(trainer, 0, 3)
    after = module.state_dict()
    changed = {name for name, value in before.items() if not torch.equal(after[name], value)}
    assert changed == {name for name, p in module.named_parameters() if p.requires_grad}
    assert all(".lora_" in name for name in changed) and len(changed) == 2 * 7 * 2


@pytest.mark.parametrize("recipe", ["tiny_qwen", "tiny_qwen_untied"])
def test_a_merged_publication_is_a_plain_model_that_computes_what_the_adapter_does(
    tmp_path, recipe
):
    trainer = adapted(tmp_path, steps=3, recipe=recipe)
    base = weights.digest_of_directory(tmp_path / "model")
    published(trainer, "v3", "merged")
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
    torch.testing.assert_close(
        logits_of(merged), logits_of(trainer.worker.engine.module), rtol=1e-5, atol=1e-5
    )
    with torch.random.fork_rng():
        peft = PeftModel.from_pretrained(
            AutoModelForCausalLM.from_pretrained(tmp_path / "model"), save(trainer, "v3")
        )
    for name, tensor in peft.merge_and_unload().state_dict().items():
        torch.testing.assert_close(merged.state_dict()[name], tensor, rtol=1e-6, atol=1e-7)
    names = [one["name"] for one in weights.manifest_of_directory(tmp_path / "model")[0]]
    assert [one["name"] for one in weights.manifest_of_directory(tmp_path / "merged")[0]] == names
    assert weights.digest_of_directory(tmp_path / "model") == base


def save(trainer, version):
    trainer.call("save", version=version, dir=str(trainer.directory / "checkpoint"))
    return str(trainer.directory / "checkpoint" / "hf")


def test_a_checkpoint_is_a_peft_directory_of_the_adapter_alone(tmp_path):
    trainer = adapted(tmp_path, steps=2)
    directory = save(trainer, "v2")
    names = {path.name for path in weights.list_files(directory)}
    assert {
        "adapter_config.json",
        "adapter_model.safetensors",
        "base_model.json",
        "tokenizer.json",
    } <= names
    assert not names & {"config.json", "model.safetensors"}
    opened = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(tmp_path / "model"), directory
    )
    expected = logits_of(trainer.worker.engine.module)
    assert torch.equal(logits_of(opened), expected)
    by_transformers = AutoModelForCausalLM.from_pretrained(
        directory
    )  # The base's path is in adapter_config.json.
    assert torch.equal(logits_of(by_transformers), expected)
    tokens = [
        AutoTokenizer.from_pretrained(place).encode("1+1")
        for place in (directory, tmp_path / "model")
    ]
    assert tokens[0] == tokens[1]
    config = json.loads((tmp_path / "checkpoint" / "hf" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["inference_mode"]) == (4, 8, True)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_training_on_from_a_checkpoint_in_a_new_process_gives_the_bits_of_training_on(
    tmp_path, dtype
):
    trainer = adapted(tmp_path, steps=2, dtype=dtype)
    checkpoint = trainer.call("save", version="v2", dir=str(tmp_path / "checkpoint"))
    expected = train(trainer, 2, 4)
    digests = {form: published(trainer, "v4", form)["digest"] for form in ("merged", "adapter")}
    load = {
        "version": "v2",
        "model_path": str(tmp_path / "model"),
        "optimizer": OPTIMIZER,
        "checkpoint": checkpoint,
    }
    loss = trainer.artifacts.put_json(POLICY_LOSS)
    script = [{"op": "load", "args": load}]
    for k in (2, 3):
        batch = trainer.artifacts.put_json(trajectory_batch(trainer.artifacts, LENGTHS, seed=k))
        step = {"batch": batch, "loss": loss, "optimizer": OPTIMIZER, "micro_batch_tokens_max": 64}
        script.append({"op": "train", "args": {"from": f"v{k}", "to": f"v{k + 1}", **step}})
    script.append(
        {
            "op": "publish",
            "args": {"version": "v4", "dir": str(tmp_path / "again"), "form": "adapter"},
        }
    )
    spec = {"engine": "torch", "dtype": dtype, "lora": LORA}
    answers = run_ranks(tmp_path, script, artifacts=trainer.artifacts, ranks=1, **spec)[0]
    assert [step for answer in answers[2:4] for step in answer["steps"]] == expected
    assert answers[4]["digest"] == digests["adapter"]


def test_the_digest_is_the_policys_in_every_form_and_another_with_another_base_or_scale(tmp_path):
    trainer = adapted(tmp_path / "a", steps=2)
    saved = trainer.call("save", version="v2", dir=str(tmp_path / "checkpoint"))
    adapter, merged = (published(trainer, "v2", form) for form in ("adapter", "merged"))
    assert adapter["digest"] == merged["digest"] == saved["digest"]
    assert adapter["digest"] == weights.digest_of_directory(tmp_path / "a" / "adapter")
    assert merged["digest"] != weights.digest_of_directory(
        tmp_path / "a" / "merged"
    )  # That of the merged tensors.
    assert adapter["base"] == {
        "dir": str(tmp_path / "a" / "model"),
        "digest": weights.digest_of_directory(tmp_path / "a" / "model"),
    }
    # New adapters are the same bits beside any base of these shapes: only what stands before them
    # differs.
    others = {
        "a": {},
        "scaled": {"lora": {**LORA, "alpha": 16}},
        "untied": {"recipe": "tiny_qwen_untied"},
    }
    fresh = {}
    for name, options in others.items():
        fresh[name] = published(adapted(tmp_path / f"fresh_{name}", **options), "v0", "adapter")
    assert len({one["digest"] for one in fresh.values()}) == 3
    assert len({str(one["tensors"]) for one in fresh.values()}) == 1


def test_an_adapter_beside_another_base_than_it_was_trained_beside_is_refused(tmp_path):
    trainer = adapted(tmp_path, steps=1)
    checkpoint = trainer.call("save", version="v1", dir=str(tmp_path / "checkpoint"))
    trainer.call("create_model", recipe="tiny_qwen", seed=2, dir=str(tmp_path / "model"))
    with pytest.raises(
        BadDataError, match="was trained on a model with digest .* Restore the model"
    ):
        trainer.load("v1", checkpoint)


def test_a_checkpoint_of_another_adapter_or_of_whole_weights_is_refused(tmp_path):
    checkpoint = adapted(tmp_path, steps=1).call(
        "save", version="v1", dir=str(tmp_path / "checkpoint")
    )
    for spec in ({"lora": {**LORA, "rank": 8}}, {"lora": None}):
        with pytest.raises(BadDataError, match="because the trainer differs: lora is"):
            Trainer(tmp_path, **spec).load("v1", checkpoint)


def test_the_reference_is_the_same_model_with_its_adapter_off(tmp_path):
    trainer = adapted(tmp_path, steps=3)
    batch = trainer.artifacts.put_json(trajectory_batch(trainer.artifacts, LENGTHS, seed=9))

    def scored(worker, version, columns, path):
        args = {"version": version, "batch": batch, "columns": columns, "reference_path": path}
        worker.call("score", **args, micro_batch_tokens_max=64)
        found = [msgpack.unpackb(blob)["values"] for blob in worker.io.blobs]
        return [
            np.concatenate([np.frombuffer(value, "<f4") for value in values]) for values in found
        ]

    old, reference = scored(trainer, "v3", ["old_logp", "ref_logp"], None)
    assert np.array_equal(
        scored(trainer, "v3", ["ref_logp"], str(tmp_path / "model"))[0], reference
    )
    assert trainer.worker.trainer.references.model is None  # No second copy.
    plain = Trainer(tmp_path)
    plain.load()
    assert np.array_equal(scored(plain, "v0", ["old_logp"], None)[0], reference)
    assert np.abs(old - reference).max() > 1e-4
    assert np.array_equal(scored(trainer, "v3", ["old_logp"], None)[0], old)  # And it is on again.


@pytest.mark.parametrize("targets", [["embed_tokens"], ["lm_head"], ["no_such_layer"]])
def test_targets_that_cannot_have_an_adapter_are_refused(tmp_path, targets):
    with pytest.raises(BadDataError, match="trainer.lora.targets"):
        adapted(tmp_path, lora={**LORA, "targets": targets})


def test_named_targets_get_an_adapter_and_no_other(tmp_path):
    trainer = adapted(tmp_path, lora={**LORA, "targets": ["q_proj", "v_proj"]})
    names = {
        entry["name"].split(".")[-3] for entry in published(trainer, "v0", "adapter")["tensors"]
    }
    assert names == {"q_proj", "v_proj"}


def test_what_is_not_installed_or_does_not_fit_is_told_at_the_start(tmp_path, monkeypatch):
    from holdfast_worker.trainer import numerics

    monkeypatch.setattr(
        numerics, "_installed", lambda names: {n: "1" for n in names if n != "bitsandbytes"}
    )
    with pytest.raises(
        ValueError, match="quantize because its environment has no bitsandbytes: pip install"
    ):
        Trainer(tmp_path, lora={**LORA, "quantize": "nf4"})
    with pytest.raises(ValueError, match="because its model has a score head"):
        Trainer(tmp_path, lora=LORA, head="score")


def test_the_numerics_name_the_adapter_and_its_packages(tmp_path):
    trainer = adapted(tmp_path)
    numerics = trainer.load()["numerics"]
    shape = {name: value for name, value in LORA.items() if name != "publish"}
    assert numerics["lora"] == {**shape, "seed": 1} and "peft" in numerics["packages"]
    assert Trainer(tmp_path).worker.numerics["lora"] is None


def test_weights_of_4_bits_are_trained_beside_published_and_saved(tmp_path):
    trainer = adapted(tmp_path, steps=2, lora={**LORA, "quantize": "nf4"})
    module = trainer.worker.engine.module
    assert "Linear4bit" in {type(part).__name__ for part in module.modules()}
    published(trainer, "v2", "merged")  # Of the weights that were trained beside: dequantised.
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
    torch.testing.assert_close(logits_of(merged), logits_of(module), rtol=1e-5, atol=1e-5)
    checkpoint = trainer.call("save", version="v2", dir=str(tmp_path / "checkpoint"))
    expected = train(trainer, 2, 3)
    trainer.load("v2", checkpoint)
    assert train(trainer, 2, 3) == expected
