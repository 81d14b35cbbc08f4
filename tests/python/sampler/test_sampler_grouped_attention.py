"""Attention of models whose query heads share keys and values."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM
from transformers.integrations import sdpa_attention

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
    return counted


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
