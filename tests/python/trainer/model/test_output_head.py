"""
Log-probabilities chunk by chunk: the values and gradients of the whole, and never the logits of
more than a chunk.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)

from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.forward import policy_forward

VOCABULARY = 211
SMALL = {
    **{
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
    },
    **{
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "head_dim": 8,
    },
}


def llama(*, tied: bool, dtype: torch.dtype = torch.float32) -> LlamaForCausalLM:
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(**SMALL, tie_word_embeddings=tied)).to(dtype)


def rows_of(lengths: list[int]) -> SimpleNamespace:
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    mask[:, :2] = False
    return SimpleNamespace(tokens=tokens, mask=mask)


ROWS = rows_of([19, 12, 7])


def gradients(model, chunk_tokens, *, need, temperature):
    model.zero_grad()
    live = policy_forward(
        model, ROWS, need=need, temperature=temperature, chunk_tokens=chunk_tokens
    )
    weight = torch.linspace(-1, 1, ROWS.mask.numel(), dtype=torch.float64).view_as(ROWS.mask)
    loss = sum((torch.where(ROWS.mask, value, 0.0) * weight).sum() for value in live.values())
    loss.backward()
    return live, {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("need", [{"logp"}, {"logp", "entropy"}])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_chunks_give_the_values_and_gradients_of_the_whole_in_float32(tied, need, temperature):
    model = llama(tied=tied)
    live, expected = gradients(model, None, need=need, temperature=temperature)
    for chunk in (1, 5, 16):
        chunked, found = gradients(model, chunk, need=need, temperature=temperature)
        for name in need:
            torch.testing.assert_close(chunked[name], live[name], rtol=1e-6, atol=1e-6)
        for name, gradient in expected.items():
            assert (found[name] - gradient).norm() <= 1e-6 * gradient.norm(), name


def test_in_float64_chunks_differ_by_rounding_alone():
    model = llama(tied=True, dtype=torch.float64)
    # Log-probabilities are float32 by contract: their gradients are what can agree no better.
    expected = gradients(model, None, need={"logp"}, temperature=1.0)[1]
    found = gradients(model, 7, need={"logp"}, temperature=1.0)[1]
    for name, gradient in expected.items():
        assert (found[name] - gradient).norm() <= 1e-7 * gradient.norm(), name


def test_at_or_below_a_chunk_nothing_changes_to_the_bit():
    model = llama(tied=True)
    columns = int(ROWS.mask.any(0).sum()) * len(ROWS.tokens)
    whole, expected = gradients(model, None, need={"logp"}, temperature=1.0)
    same, found = gradients(model, columns, need={"logp"}, temperature=1.0)
    assert torch.equal(whole["logp"], same["logp"])
    assert all(torch.equal(found[name], gradient) for name, gradient in expected.items())


class Largest(TorchDispatchMode):
    """The most rows of vocabulary that any tensor made under it has."""

    def __init__(self):
        super().__init__()
        self.rows = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (tuple, list)) else [made]:
            if (
                isinstance(tensor, torch.Tensor)
                and tensor.dim() > 0
                and tensor.shape[-1] == VOCABULARY
            ):
                self.rows = max(self.rows, tensor.numel() // VOCABULARY)
        return made


@pytest.mark.parametrize("need", [{"logp"}, {"logp", "entropy"}])
def test_no_tensor_holds_the_logits_of_more_than_a_chunk(need):
    model = llama(tied=False)
    found = {}
    for chunk in (None, 5):
        with Largest() as largest:
            gradients(model, chunk, need=need, temperature=1.0)
        found[chunk] = largest.rows
    columns = int(ROWS.mask.any(0).sum()) * len(ROWS.tokens)
    assert found == {
        None: columns,
        5: max(5, SMALL["hidden_size"]),
    }  # The head's weight, transposed, has 16 rows.


def test_scoring_without_gradient_is_chunked_too():
    model = llama(tied=True)
    with torch.no_grad(), Largest() as largest:
        values = policy_forward(model, ROWS, need={"logp"}, temperature=1.0, chunk_tokens=5)
    assert largest.rows <= max(5, SMALL["hidden_size"]) and not values["logp"].requires_grad


def test_the_head_is_the_models_own_again_afterwards():
    model = llama(tied=True)
    policy_forward(model, ROWS, need={"logp"}, temperature=1.0, chunk_tokens=5)
    assert "forward" not in model.lm_head.__dict__
    assert model(input_ids=ROWS.tokens).logits.shape[-1] == VOCABULARY


@pytest.mark.parametrize(
    ("make", "config"),
    [
        (CohereForCausalLM, CohereConfig(**SMALL, logit_scale=0.5)),
        (Gemma2ForCausalLM, Gemma2Config(**SMALL)),
    ],
)
def test_models_that_change_their_logits_after_the_head_are_refused(make, config):
    model = make(config)
    with pytest.raises(BadDataError, match="Set trainer.logits_chunk_tokens: null"):
        policy_forward(model, ROWS, need={"logp"}, temperature=1.0, chunk_tokens=5)
    assert (
        policy_forward(model, ROWS, need={"logp"}, temperature=1.0, chunk_tokens=None)["logp"].shape
        == ROWS.mask.shape
    )
