"""Attention of models whose query heads share keys and values."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional
from transformers import (
    AfmoeConfig,
    AfmoeForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.integrations import sdpa_attention
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from holdfast_worker.sampler import grouped_attention

SIZES = {
    "vocab_size": 50,
    "hidden_size": 96,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES)),
    # It names the mask where it calls for attention.
    "afmoe": lambda: AfmoeForCausalLM(AfmoeConfig(**SIZES, num_dense_layers=2)),
}
MASK = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]])


@pytest.fixture
def copies(monkeypatch):
    """How often keys or values were copied; what the process had is restored afterwards."""
    counted = []
    repeat = sdpa_attention.repeat_kv
    monkeypatch.setattr(
        sdpa_attention, "repeat_kv", lambda *args: counted.append(args) or repeat(*args)
    )
    monkeypatch.setattr(sdpa_attention, "use_gqa_in_sdpa", grouped_attention.use_gqa_in_sdpa)
    original = ALL_ATTENTION_FUNCTIONS["sdpa"]
    yield counted
    ALL_ATTENTION_FUNCTIONS.register("sdpa", original)


@torch.inference_mode()
def logits(model):
    """Of a padded prompt and of one more token after it."""
    ids = torch.arange(12).view(3, 4)
    first = model(input_ids=ids, attention_mask=MASK, use_cache=True)
    second = model(
        input_ids=ids[:, :1],
        attention_mask=torch.cat([MASK, MASK.new_ones(3, 1)], dim=-1),
        past_key_values=first.past_key_values,
    )
    return torch.cat([first.logits, second.logits], dim=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", MODELS)
def test_keys_are_not_copied_beside_a_mask_and_the_bits_stay(name, dtype, copies):
    torch.manual_seed(3)
    model = MODELS[name]().eval().to(dtype)
    before = logits(model)
    assert len(copies) > 0
    copies.clear()
    grouped_attention.read_groups_in_place()
    assert torch.equal(logits(model), before)
    assert copies == []


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_queries_of_a_group_are_rows_of_one_head_in_16_bits(dtype, masked, monkeypatch):
    """As exact as head by head, and then every head's keys are read once."""
    torch.manual_seed(4)
    query, key, value = (torch.randn(5, heads, n, 16) for heads, n in ((6, 1), (2, 30), (2, 30)))
    mask = torch.rand(5, 1, 1, 30) > 0.3 if masked else None
    module = SimpleNamespace(num_key_value_groups=3)
    shapes = []
    kernel = functional.scaled_dot_product_attention

    def seen(query, *args, **kwargs):
        shapes.append(query.shape[1:3])
        return kernel(query, *args, **kwargs)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", seen)
    inputs = [x.to(dtype) for x in (query, key, value)]
    out, _ = grouped_attention.attention(module, *inputs, mask, scaling=0.25)
    assert shapes == [(6, 1) if dtype == torch.float32 else (2, 3)]
    wide = [x.float() for x in inputs]
    key, value = (x.repeat_interleave(3, dim=1) for x in wide[1:])
    expected = kernel(wide[0], key, value, attn_mask=mask, scale=0.25).transpose(1, 2)
    assert out.shape == expected.shape
    assert out.dtype == dtype
    assert torch.allclose(out.float(), expected, atol=1e-5 if dtype == torch.float32 else 0.02)
