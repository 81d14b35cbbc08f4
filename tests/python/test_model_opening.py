"""
How models are opened: their kernels of attention, code that they bring, and tensors that they lack
or have no place for.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, GPTNeoConfig, GPTNeoForCausalLM, Qwen2PreTrainedModel

import sampler_fixtures as fixtures
from holdfast_worker.model_opening import PLAIN, Opening
from holdfast_worker.operation import BadDataError, OperationIO
from holdfast_worker.trainer.model.model_source import ModelSource
from holdfast_worker.wire.types import Publication, PublicationBase
from own_model import change, give_code, use_modules
from trainer_harness import OPTIMIZER, Trainer, trajectory_batch


def adapter_of(base: Path) -> Publication:
    """An adapter on the model in a directory."""
    on = PublicationBase(dir=str(base), digest="d")
    return Publication(version="v", dir="", digest="d", tensors=[], files=[], base=on)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return fixtures.make_model(tmp_path / "model")


@pytest.fixture
def model_with_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_modules(monkeypatch, tmp_path)
    return give_code(fixtures.make_model(tmp_path / "model"))


def load(trainer: Trainer, model: Path) -> dict[str, Any]:
    arguments = {"version": "v", "model_path": str(model), "optimizer": OPTIMIZER}
    return trainer.call("load", **arguments, checkpoint=None)


def kernels(model: Any) -> str:
    return model.config._attn_implementation


@pytest.mark.parametrize("chosen", ["eager", "sdpa"])
def test_trainer_reference_and_sampler_have_the_configured_kernels_and_versions_say_so(
    plain: Path, tmp_path: Path, chosen: str
) -> None:
    trainer = Trainer(tmp_path, attn_implementation=chosen)
    assert load(trainer, plain)["numerics"]["attn_implementation"] == chosen
    worker = trainer.worker
    assert kernels(worker.engine.model) == chosen
    references = worker.trainer.references
    with references.borrowed(str(plain), dtype="float32", offload=False) as reference:
        assert kernels(reference) == chosen
    publication = trainer.call("publish", version="v", dir=str(tmp_path / "published"))
    sampler = fixtures.make_worker(attn_implementation=chosen)
    fixtures.load(sampler, plain, publication)
    assert kernels(sampler.engine.model) == chosen


def test_kernels_that_are_not_installed_are_one_sentence(plain: Path, tmp_path: Path) -> None:
    trainer = Trainer(tmp_path, attn_implementation="flash_attention_2")
    with pytest.raises(BadDataError, match=f"Cannot open model '{plain}': .*[Ff]lash"):
        load(trainer, plain)


def test_a_module_that_is_missing_is_no_problem_of_the_model(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any, **__: Any) -> None:
        importlib.import_module("transformers.removed")

    monkeypatch.setattr(AutoConfig, "from_pretrained", missing)
    with pytest.raises(ModuleNotFoundError):
        load(Trainer(tmp_path), plain)


def test_code_of_a_model_runs_in_trainer_and_sampler_only_where_it_is_trusted(
    model_with_code: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadDataError, match=r"trust_remote_code"):
        load(Trainer(tmp_path / "untrusting"), model_with_code)
    trainer = Trainer(tmp_path, trust_remote_code=True)
    assert load(trainer, model_with_code)["numerics"]["trust_remote_code"] is True
    assert type(trainer.worker.engine.model).__name__ == "OwnForCausalLM"
    batch = trajectory_batch(trainer.artifacts, [[6, 7]])
    trainer.optimizer = OPTIMIZER
    assert trainer.train(batch, between=("v", "w"))["version"] == "w"
    publication = trainer.call("publish", version="w", dir=str(tmp_path / "published"))
    with pytest.raises(ValueError, match="trust_remote_code"):
        fixtures.load(fixtures.make_worker(), model_with_code, publication)
    sampler = fixtures.make_worker(trust_remote_code=True)
    fixtures.load(sampler, model_with_code, publication)
    assert type(sampler.engine.model).__name__ == "OwnForCausalLM"
    slab = fixtures.slab_arguments("w", draws=1, samples=1)
    sampler.operations["generate"](slab, OperationIO.alone())


UP = "model.layers.1.mlp.up_proj.weight"
MLP = [
    f"model.layers.{n}.mlp.{name}_proj.weight" for n in (0, 1) for name in ("down", "gate", "up")
]


def drop(model: Path, *names: str) -> Path:
    """The model without these tensors."""
    path = model / fixtures.WEIGHTS_NAME
    tensors = load_file(path)
    kept = {name: tensor for name, tensor in tensors.items() if name not in names}
    assert len(kept) == len(tensors) - len(names)
    save_file(kept, path, metadata={"format": "pt"})
    return model


def lacks(model: Path, *names: str) -> str:
    return rf"^Cannot open model '{model}' because it lacks tensors: \['{', '.join(names)}'\]\. Fix"


@pytest.mark.parametrize("head", [None, "value", "score"])
def test_a_model_without_one_tensor_is_refused_whatever_its_head(
    plain: Path, head: str | None
) -> None:
    drop(plain, UP)
    with pytest.raises(BadDataError, match=lacks(plain, UP)):
        ModelSource(plain, head=head).open_model("float32")


def test_trainer_reference_and_sampler_refuse_a_model_without_one_tensor(
    plain: Path, tmp_path: Path
) -> None:
    broken = drop(fixtures.make_model(tmp_path / "broken"), UP)
    trainer = Trainer(tmp_path)
    with pytest.raises(BadDataError, match=lacks(broken, UP)):
        load(trainer, broken)
    load(trainer, plain)
    references = trainer.worker.trainer.references
    with (
        pytest.raises(BadDataError, match=lacks(broken, UP)),
        references.borrowed(str(broken), dtype="float32", offload=False),
    ):
        pass
    engine = fixtures.make_worker().engine
    with pytest.raises(BadDataError, match=lacks(broken, UP)):
        engine.open_adapter(adapter_of(broken))
    with pytest.raises(BadDataError, match=lacks(broken, UP)):
        engine.cold_probe(str(broken), [[1, 2]])


def test_an_untied_model_without_its_output_head_is_refused(plain: Path) -> None:
    change(plain, tie_word_embeddings=False)
    with pytest.raises(BadDataError, match=lacks(plain, "lm_head.weight")):
        ModelSource(plain).open_model("float32")


def test_a_model_without_many_tensors_names_the_first_and_counts_the_rest(plain: Path) -> None:
    drop(plain, *MLP)
    with pytest.raises(BadDataError, match=r"0\.mlp\.down_proj.*'\] and 2 more\. Fix"):
        ModelSource(plain).open_model("float32")


def test_open_with_missing_gives_every_opening_the_same_tensor(plain: Path, tmp_path: Path) -> None:
    drop(plain, UP)
    opened = []
    for seed in (1, 2):
        trainer = Trainer(tmp_path / str(seed), seed=seed, open_with_missing=True)
        assert load(trainer, plain)["numerics"]["open_with_missing"] is True
        opened.append(trainer.worker.engine.model)
    references = trainer.worker.trainer.references
    with references.borrowed(str(plain), dtype="float32", offload=False) as reference:
        opened.append(reference)
    opened.append(Opening(open_with_missing=True).language_model(plain))
    first, *others = [model.state_dict() for model in opened]
    assert first[UP].std() > 0
    assert all(torch.equal(first[name], other[name]) for other in others for name in first)


def test_opening_a_model_draws_nothing_from_the_run_s_randomness(plain: Path) -> None:
    before = torch.random.get_rng_state()
    Opening(open_with_missing=True).language_model(drop(plain, UP))
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_tensor_of_a_wrong_shape_is_named_with_both_shapes(plain: Path) -> None:
    change(plain, vocab_size=50)
    says = "'model.embed_tokens.weight' has the shape \\(\\d+, 128\\).* describes \\(50, 128\\)"
    with pytest.raises(BadDataError, match=says):
        ModelSource(plain).open_model("float32")


SCORE, BIAS = "score.weight", "score.bias"
HEADS = pytest.mark.parametrize("head", [None, "value", "score"])


def add(model: Path, *names: str) -> Path:
    """The model with more tensors in its file, as a head of one number has them."""
    path = model / fixtures.WEIGHTS_NAME
    more = {name: torch.ones(1, 128) for name in names}
    save_file({**load_file(path), **more}, path, metadata={"format": "pt"})
    return model


def unplaced(model: Path, name: str, *, kind: str = "Qwen2ForCausalLM") -> str:
    return (
        rf"^Cannot open model '{model}' because {kind} has no place for tensors of its files: "
        rf"\['{name}'\]\. Fix: start a new run with a model of this architecture"
    )


@HEADS
def test_a_model_with_a_tensor_of_another_architecture_is_refused_whatever_its_head(
    plain: Path, head: str | None
) -> None:
    add(plain, "model.layers.0.mlp.router.weight")
    with pytest.raises(BadDataError, match=r"has no place for .*'model\.layers\.0\.mlp\.router"):
        ModelSource(plain, head=head).open_model("float32")


@HEADS
def test_a_model_with_more_layers_than_its_configuration_is_refused(
    plain: Path, head: str | None
) -> None:
    change(plain, num_hidden_layers=1, layer_types=["full_attention"])
    with pytest.raises(BadDataError, match=r"1\.mlp\.down_proj.*'\] and \d+ more\. Fix"):
        ModelSource(plain, head=head).open_model("float32")


def test_trainer_reference_and_sampler_refuse_a_reward_model_as_a_language_model(
    plain: Path, tmp_path: Path
) -> None:
    reward = add(fixtures.make_model(tmp_path / "reward"), SCORE)
    trainer = Trainer(tmp_path)
    says = unplaced(reward, SCORE) + r", or set model\.open_with_unexpected: true"
    with pytest.raises(BadDataError, match=says):
        load(trainer, reward)
    load(trainer, plain)
    references = trainer.worker.trainer.references
    with (
        pytest.raises(BadDataError, match=says),
        references.borrowed(str(reward), dtype="float32", offload=False),
    ):
        pass
    engine = fixtures.make_worker().engine
    with pytest.raises(BadDataError, match=says):
        engine.open_adapter(adapter_of(reward))
    with pytest.raises(BadDataError, match=says):
        engine.cold_probe(str(reward), [[1, 2]])


@pytest.mark.parametrize("head", ["value", "score"])
def test_a_head_is_placed_on_a_language_model_whose_output_head_it_does_not_use(
    tmp_path: Path, head: str
) -> None:
    untied = fixtures.make_model(tmp_path / "model", "tiny_qwen_untied")
    opened = ModelSource(add(untied, "lm_head.bias"), head=head).open_model("float32")
    assert not opened.score.weight.any()


def test_a_classifier_of_another_name_is_refused_instead_of_a_head_of_zeros(plain: Path) -> None:
    add(plain, "classifier.weight")
    says = unplaced(plain, "classifier.weight", kind="Qwen2ForTokenClassification")
    with pytest.raises(BadDataError, match=says):
        ModelSource(plain, head="score").open_model("float32")


def test_a_value_model_is_refused_as_a_reward_model_which_has_no_bias(plain: Path) -> None:
    path = add(plain, SCORE) / fixtures.WEIGHTS_NAME
    save_file({**load_file(path), BIAS: torch.ones(1)}, path, metadata={"format": "pt"})
    with pytest.raises(BadDataError, match=rf"has no place for .*'{BIAS}'"):
        ModelSource(plain, head="score").open_model("float32")
    assert ModelSource(plain, head="value").open_model("float32").score.bias.all()


@HEADS
def test_tensors_that_transformers_ignores_on_purpose_pass(
    plain: Path, head: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers of multi-token prediction, vision towers, and frequencies that are computed."""
    declared = [r"^mtp.*", r"^model\.visual.*"]
    monkeypatch.setattr(Qwen2PreTrainedModel, "_keys_to_ignore_on_load_unexpected", declared)
    frequencies = "model.layers.0.self_attn.rotary_emb.inv_freq"
    add(plain, "mtp.fc.weight", "model.visual.merger.weight", frequencies)
    ModelSource(plain, head=head).open_model("float32")


def test_a_copy_of_a_tied_tensor_passes(plain: Path) -> None:
    path = plain / fixtures.WEIGHTS_NAME
    tensors = load_file(path)
    tensors[HEAD] = tensors[EMBEDDINGS].clone()
    save_file(tensors, path, metadata={"format": "pt"})
    Opening().language_model(plain)


def test_buffers_that_the_model_computes_pass(tmp_path: Path) -> None:
    """Earlier releases of transformers saved masks of attention."""
    sizes = {"hidden_size": 8, "num_layers": 1, "num_heads": 2, "vocab_size": 8}
    config = GPTNeoConfig(**sizes, attention_types=[[["global"], 1]], max_position_embeddings=8)
    GPTNeoForCausalLM(config).save_pretrained(tmp_path)
    masks = [f"transformer.h.0.attn.attention.{name}" for name in ("bias", "masked_bias")]
    Opening().language_model(add(tmp_path, *masks))
    with pytest.raises(BadDataError, match=r"\['transformer\.h\.0\.attn\.attention\.other'\]"):
        Opening().language_model(add(tmp_path, "transformer.h.0.attn.attention.other"))


def test_open_with_unexpected_leaves_the_tensors_out_of_every_opening_and_of_exports(
    plain: Path, tmp_path: Path
) -> None:
    add(plain, SCORE)
    trainer = Trainer(tmp_path, open_with_unexpected=True)
    load(trainer, plain)
    publication = trainer.call("publish", version="v", dir=str(tmp_path / "published"))
    assert SCORE not in {tensor["name"] for tensor in publication["tensors"]}
    fixtures.load(fixtures.make_worker(), plain, publication)
    sampler = fixtures.make_worker(open_with_unexpected=True)
    assert sampler.engine.opening.language_model(plain).lm_head is not None


def test_a_model_that_no_setting_opens_is_refused_without_naming_one(plain: Path) -> None:
    with pytest.raises(BadDataError) as unexpected:
        PLAIN.language_model(add(plain, SCORE))
    with pytest.raises(BadDataError) as missing:
        PLAIN.language_model(drop(plain, UP))
    assert "model.open" not in f"{unexpected.value}{missing.value}"


EMBEDDINGS, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def give_head(model: Path, difference: float) -> Path:
    """A file with an output head beside its embeddings, whose config.json ties both."""
    path = model / fixtures.WEIGHTS_NAME
    tensors = load_file(path)
    tensors[HEAD] = tensors[EMBEDDINGS] + difference
    save_file(tensors, path, metadata={"format": "pt"})
    return model


def test_a_head_beside_embeddings_that_the_configuration_ties_is_refused(
    plain: Path, tmp_path: Path
) -> None:
    says = rf"^Cannot open model '{give_head(plain, 0.5)}' because its config\.json ties '{HEAD}'"
    with pytest.raises(BadDataError, match=says):
        load(Trainer(tmp_path), plain)
    with pytest.raises(BadDataError, match=says):
        fixtures.make_worker().engine.open_adapter(adapter_of(plain))


def test_a_head_that_equals_the_embeddings_is_tied_to_them(plain: Path) -> None:
    opened = ModelSource(give_head(plain, 0)).open_model("float32")
    assert opened.lm_head.weight is opened.model.embed_tokens.weight


def test_a_head_of_its_own_is_used_by_trainer_and_sampler_if_the_configuration_says_so(
    plain: Path, tmp_path: Path
) -> None:
    change(give_head(plain, 0.5), tie_word_embeddings=False)
    trainer = Trainer(tmp_path)
    load(trainer, plain)
    publication = trainer.call("publish", version="v", dir=str(tmp_path / "published"))
    sampler = fixtures.make_worker()
    fixtures.load(sampler, plain, publication)
    trainer_state, sampler_state = (
        trainer.worker.engine.model.state_dict(),
        sampler.engine.model.state_dict(),
    )
    assert all(torch.equal(trainer_state[name], sampler_state[name]) for name in (EMBEDDINGS, HEAD))
    assert not torch.equal(trainer_state[HEAD], trainer_state[EMBEDDINGS])
