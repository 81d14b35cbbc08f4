"""
Small randomly initialised models with a character tokenizer, for the quickstart and for tests.
"""

from __future__ import annotations

import json
import os
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast_worker import private_files, weights
from holdfast_worker.operation import BadDataError

UNFINISHED = r"\..+\.\d+\.tmp"  # A model that is being written.
PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"
ROLES = ("<system>", "<user>", "<assistant>")
SPECIAL_TOKENS = (PAD, EOS, UNKNOWN, *ROLES)
# Spelled as byte-level BPE spells them: Ġ is the space, Ċ the new line.
CHARACTERS = string.digits + string.ascii_letters + "ĠĊ" + string.punctuation

# A turn is its role's token, the text and the end-of-sequence token, so a completion ends as a
# plain text does.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<' + message['role'] + '>' + message['content'] + '<eos>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
)

Recipe = Mapping[str, Any]  # Fields of a configuration of transformers.

TINY_QWEN: Recipe = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 512,
    "attention_dropout": 0.0,
}
RECIPES: dict[str, Recipe] = {
    "tiny_qwen": {**TINY_QWEN, "tie_word_embeddings": True},
    "tiny_qwen_untied": {**TINY_QWEN, "tie_word_embeddings": False},
}


def character_tokenizer() -> Any:
    """
    One token per character: a byte-level BPE without merges. Byte-level because transformers 5
    opens the tokenizer of every model of type qwen2 as Qwen2Tokenizer, regardless of its
    tokenizer.json, and would otherwise drop spaces.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: place for place, token in enumerate((*SPECIAL_TOKENS, *CHARACTERS))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        additional_special_tokens=list(ROLES),
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        padding_side="left",
        model_max_length=TINY_QWEN["max_position_embeddings"],
    )


def create_model(recipe: str, *, seed: int, directory: str, home: str) -> str:
    """
    Writes a model directory and returns the digest of its weights: float32, the same bits for the
    same seed and package versions. Replaces an existing directory inside `home`.
    """
    import torch
    from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

    if recipe not in RECIPES:
        raise BadDataError(
            f"Cannot create model '{recipe}' because there is no such recipe: use one of "
            f"{sorted(RECIPES)}"
        )
    tokenizer = character_tokenizer()
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = Qwen2Config(vocab_size=len(tokenizer), bos_token_id=None, **ids, **RECIPES[recipe])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(config)
    model.generation_config = GenerationConfig(bos_token_id=None, **ids)

    target = Path(directory)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    weights.clear_directory(temporary, home=home, named=UNFINISHED)
    model.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    add_chat_template(temporary)
    private_files.open_as_usual(temporary)
    weights.replace_directory(temporary, target, home=home)
    return weights.digest_of_directory(target)


def add_chat_template(directory: Path) -> None:
    """
    Also writes the template into tokenizer_config.json, where tools older than chat_template.jinja
    look for it.
    """
    path = directory / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config.setdefault("chat_template", CHAT_TEMPLATE)
    path.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n")
