"""The models that are made on the spot."""

from __future__ import annotations

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from holdfast_worker import weights
from holdfast_worker.operation import BadDataError
from holdfast_worker.prompts import encode_supervised
from holdfast_worker.trainer.model.create_model import create_model


@pytest.fixture(scope="module")
def tied(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tied") / "model"
    return directory, create_model(
        "tiny_qwen", seed=1, directory=str(directory), home=str(directory.parent)
    )


def test_create_model_makes_the_same_bits_for_a_seed_and_others_for_another(tied, tmp_path):
    assert (
        create_model("tiny_qwen", seed=1, directory=str(tmp_path / "again"), home=str(tmp_path))
        == tied[1]
    )
    assert (
        create_model("tiny_qwen", seed=2, directory=str(tmp_path / "other"), home=str(tmp_path))
        != tied[1]
    )


def test_create_model_opens_with_from_pretrained(tied):
    model = AutoModelForCausalLM.from_pretrained(tied[0])
    assert model.config.architectures == ["Qwen2ForCausalLM"]
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert (model.config.num_hidden_layers, model.config.hidden_size) == (2, 128)
    assert (model.generation_config.eos_token_id, model.generation_config.pad_token_id) == (1, 0)
    assert "lm_head.weight" not in [tensor.name for tensor in weights.locate_tensors(tied[0])]


def test_create_model_untied_has_its_own_output_head(tmp_path):
    create_model("tiny_qwen_untied", seed=1, directory=str(tmp_path / "model"), home=str(tmp_path))
    assert "lm_head.weight" in [
        tensor.name for tensor in weights.locate_tensors(tmp_path / "model")
    ]


def test_create_model_tokenizer_has_one_token_per_character_and_gives_the_text_back(tied):
    tokenizer = AutoTokenizer.from_pretrained(tied[0])
    text = "sort 52341 => 12345\n(Yes, it's a >= b!)"
    tokens = tokenizer.encode(text)
    assert len(tokens) == len(text)
    assert tokenizer.decode(tokens) == text
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 0)


def test_create_model_chat_template_ends_a_turn_as_a_completion_ends(tied):
    tokenizer = AutoTokenizer.from_pretrained(tied[0])
    prompt = [{"role": "user", "content": "hi"}]
    whole = tokenizer.apply_chat_template(
        [*prompt, {"role": "assistant", "content": "yo"}], tokenize=False
    )
    tokens, mask = encode_supervised(tokenizer, prompt, [{"role": "assistant", "content": "yo"}])
    assert tokenizer.decode(tokens) == whole == "<user>hi<eos><assistant>yo<eos>"
    assert mask == [0, 0, 0, 0, 0, 1, 1, 1]


def test_create_model_refuses_an_unknown_recipe(tmp_path):
    with pytest.raises(BadDataError, match="'huge' because there is no such recipe: use one of"):
        create_model("huge", seed=1, directory=str(tmp_path / "model"), home=str(tmp_path))
