"""
Models that output one number per position instead of a distribution over a vocabulary: value models
(`value`) and reward models (`score`).

Both are transformers' token classifier with one label: the backbone of a causal model and a linear
head named `score`. A value model is saved as a token classifier, so
`AutoModelForTokenClassification` opens it. A reward model has no bias, and its directory names the
architecture's sequence classifier, whose tensors have the same names: with
`AutoModelForSequenceClassification` its logit is that of the last token.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from holdfast_worker.model_opening import Found, Opening
from holdfast_worker.operation import BadDataError
from holdfast_worker.weights import ModelConfig

# The language model's head, which a classifier leaves out. Every architecture of transformers that
# calls its classifier `score` calls it so.
OUTPUT_HEAD = "lm_head."


class ScalarHead(torch.nn.Linear):
    """
    [B, T, H] -> [B, T, 1] float32, regardless of the weights' type: a value in bfloat16 would have
    8 bits.
    """

    def forward(self, hidden: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.float()
        return functional.linear(hidden.float(), self.weight.float(), bias)


def open_with_head(path: Path, head: str, *, opening: Opening, config: Any, **options: Any) -> Any:
    """
    Opens the model of a directory with a head. A head that the directory lacks is zero: the same
    bits on every rank and at every load, and the first values are neutral instead of wrong.
    """
    from transformers import AutoModelForTokenClassification

    config.num_labels = 1
    config.classifier_dropout = 0.0  # If it is missing, transformers uses 0.1.
    config.token_classification_bias = (
        head == "value"
    )  # For a reward model it would cancel in every comparison.
    found = opening.loaded(AutoModelForTokenClassification, path, config=config, **options)
    model = found.model
    if not isinstance(getattr(model, "score", None), torch.nn.Linear):
        raise BadDataError(
            f"Cannot give model '{path}' a {head} head because {type(model).__name__} does not "
            "call its head `score`: "
            "use a model whose token classifier is transformers' generic one (Llama, Qwen, "
            "Mistral, Gemma, ...)"
        )
    score_names = {f"score.{name}" for name, _ in model.score.named_parameters()}
    unused = {name for name in found.unexpected if name.startswith(OUTPUT_HEAD)}
    opening.check(path, Found(model, found.missing - score_names, found.unexpected - unused))
    with torch.no_grad():
        for name, parameter in model.score.named_parameters():
            if f"score.{name}" in found.missing:
                parameter.zero_()
    model.score.__class__ = ScalarHead
    return model


def config_with_head(config: ModelConfig, head: str, *, model: Any, tokenizer: Any) -> ModelConfig:
    """The config.json of a model with this head. A value model's needs no `tokenizer`."""
    labels = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    whole = {**config, **labels, "architectures": [_architecture(head, model)]}
    if head != "score":
        return whole
    parts = {"text_config": dict(config["text_config"])} if "text_config" in config else {}
    for part in (whole, *parts.values()):
        part["pad_token_id"] = _padding(part.get("pad_token_id"), tokenizer)
    return {**whole, **parts}


def _padding(configured: int | None, tokenizer: Any) -> int | None:
    """
    The token that fills rows of the sequence classifier, which reads its score at the last token
    that is a different one. So it must not be one that ends a text or, by the chat template, a
    turn. None: there is no such token, and rows are scored one by one.
    """
    template = str(tokenizer.chat_template or "")
    for token in (configured, tokenizer.pad_token_id):
        if token is None or token == tokenizer.eos_token_id:
            continue
        if (tokenizer.convert_ids_to_tokens(token) or template) not in template:
            return token
    return None


def _architecture(head: str, model: Any) -> str:
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING as CLASSIFIERS,
    )

    if head == "score" and type(model.config) in CLASSIFIERS:
        return CLASSIFIERS[type(model.config)].__name__
    return type(model).__name__


def numbers_after(model: Any, tokens: Tensor) -> Tensor:
    """[B, T] float32: the head's output after each token. Rows are padded on the right."""
    return model(input_ids=tokens, use_cache=False).logits[..., 0]


def value_forward(
    model: Any, rows: Any, *, need: set[str], temperature: float
) -> dict[str, Tensor]:
    """
    `values` [B, T]: V before the target, because position t belongs to the target tokens[:, t].
    """
    return {"values": values_before(numbers_after(model, rows.tokens))}


def values_before(after: Tensor) -> Tensor:
    """
    [B, T] -> [B, T]: the value before a token is the one after the previous token; 0 for the first.
    """
    return functional.pad(after[:, :-1], (1, 0))


def score_forward(
    model: Any, rows: Any, *, need: set[str], temperature: float
) -> dict[str, Tensor]:
    """`score` [B]: the head's output after the last trained token."""
    return {"score": at_last(numbers_after(model, rows.tokens), rows.mask)}


def at_last(after: Tensor, mask: Tensor) -> Tensor:
    """
    [B, T], [B, T] -> [B]: the number at the last position in the mask, or at the first position if
    the mask is empty.
    """
    places = torch.arange(after.shape[1], device=after.device)
    last = (places * mask).argmax(-1, keepdim=True)
    return torch.where(places == last, after, 0.0).sum(
        -1
    )  # Not `gather`: its gradient on CUDA has no fixed order of additions.
