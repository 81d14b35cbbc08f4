"""Decoding without the model's Python: only where it has the model's own bits."""

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

import sampler_fixtures as fixtures
from holdfast_worker.sampler import decoding
from holdfast_worker.sampler.growing_cache import new_cache, positions
from own_model import change

SIZES = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
ROPE = {
    "rope_theta": 10000.0,
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}
MODELS = {
    "qwen2": lambda: Qwen2ForCausalLM(
        Qwen2Config(**SIZES, num_key_value_heads=4, tie_word_embeddings=True)
    ),
    "qwen2 with fewer key heads": lambda: Qwen2ForCausalLM(
        Qwen2Config(**SIZES, num_key_value_heads=2)
    ),
    "llama": lambda: LlamaForCausalLM(
        LlamaConfig(**SIZES, num_key_value_heads=1, attention_bias=True, mlp_bias=True)
    ),
    "llama with another rope": lambda: LlamaForCausalLM(
        LlamaConfig(**SIZES, rope_parameters={**ROPE, "original_max_position_embeddings": 16})
    ),
}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def noisy(model):
    """Biases and norms too."""
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval().requires_grad_(False)


def logits(model, step, lengths):
    """
    [steps][B, V] of six steps after prompts of these lengths, by
    `step(ids, position, cache, mask)`.
    """
    width = max(lengths)
    ids = torch.arange(len(lengths) * width).view(len(lengths), width) % 50
    mask = (torch.arange(width)[None] >= width - torch.tensor(lengths)[:, None]).long()
    cache, found = new_cache(model.config, 6), []
    with torch.inference_mode():
        model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions(mask),
            past_key_values=cache,
            use_cache=True,
        )
        for n in range(6):
            mask = torch.cat([mask, mask.new_ones(len(lengths), 1)], dim=-1)
            step_mask = None if len(set(lengths)) == 1 else mask
            found.append(
                step((ids[:, :1] + n) % 50, mask.sum(-1, keepdim=True) - 1, cache, step_mask)
            )
    return torch.stack(found)


def own_step(model):
    def step(ids, position, cache, mask):
        how = {
            "attention_mask": mask,
            "position_ids": position,
            "past_key_values": cache,
            "use_cache": True,
        }
        return model(input_ids=ids, **how).logits[:, -1]

    return step


@pytest.mark.parametrize("lengths", [[5, 5, 5], [1, 7, 4, 4], [3]])
@pytest.mark.parametrize("name", MODELS)
def test_a_decoder_has_the_bits_of_the_model_s_own_forward(name, lengths):
    model = noisy(MODELS[name]())
    decoder = decoding.decoder_of(model)
    assert torch.equal(
        logits(model, decoder.forward, lengths), logits(model, own_step(model), lengths)
    )


def test_a_decoder_reads_the_weights_as_they_are_and_keeps_no_copy():
    model = noisy(MODELS["qwen2"]())
    decoder = decoding.decoder_of(model)
    before = logits(model, decoder.forward, [4, 4])
    for parameter in model.parameters():
        old = parameter.clone()
        parameter.data.add_(0.5)
        after = logits(model, decoder.forward, [4, 4])
        assert torch.equal(after, logits(model, own_step(model), [4, 4]))
        assert not torch.equal(after, before)
        parameter.data.copy_(old)


def test_there_is_none_for_another_architecture_for_adapters_and_where_the_model_does_more():
    gpt2 = GPT2LMHeadModel(
        GPT2Config(vocab_size=50, n_embd=32, n_layer=1, n_head=2, n_positions=64)
    )
    assert decoding.decoder_of(noisy(gpt2)) is None
    eager = noisy(MODELS["llama"]())
    eager.set_attn_implementation("eager")
    assert decoding.decoder_of(eager) is None
    capped = noisy(MODELS["qwen2"]())
    capped.model.norm.register_forward_hook(lambda module, args, out: out * 1.001)
    assert decoding.decoder_of(capped) is None
    adapted = noisy(MODELS["qwen2"]())

    class Adapted(torch.nn.Linear):
        """
        As an adapter whose matrix is still 0: the same bits now, others after its first update.
        """

    adapted.model.layers[1].mlp.up_proj.__class__ = Adapted
    assert decoding.decoder_of(adapted) is None


SLIDING = {"use_sliding_window": True, "sliding_window": 8}


@pytest.mark.parametrize("full_layers", [0, 1, 3])
def test_there_is_none_where_a_layer_sees_only_a_window(full_layers):
    """Longer than the trial: it would agree on these five tokens."""
    config = Qwen2Config(**SIZES, num_key_value_heads=2, max_window_layers=full_layers, **SLIDING)
    decoder = decoding.decoder_of(noisy(Qwen2ForCausalLM(config)))
    assert (decoder is None) == (full_layers < 3)


@pytest.mark.parametrize("full_layers", [0, 1])
def test_a_sampler_of_a_model_with_windows_samples_beyond_them(tmp_path, full_layers):
    model = fixtures.make_model(tmp_path / "tiny")
    windows = {**SLIDING, "sliding_window": 4, "max_window_layers": full_layers}
    change(model, **windows, layer_types=None)
    worker = fixtures.make_worker()
    fixtures.load(worker, model, fixtures.publish(model, "v1"))
    slab = fixtures.generate(worker, fixtures.slab_arguments("v1", ignore_eos=True))[1]
    plain = AutoModelForCausalLM.from_pretrained(model)
    assert plain.config.layer_types[-1] == "sliding_attention"
    assert fixtures.logp_errors(plain, slab).max() < 1e-4


def test_a_sampler_of_the_shipped_model_decodes_by_it_with_the_model_s_bits(tmp_path):
    model = fixtures.make_model(tmp_path / "tiny")
    publication, arguments = fixtures.publish(model, "v1"), fixtures.slab_arguments("v1")
    slabs = []
    for by_hand in (True, False):
        worker = fixtures.make_worker()
        fixtures.load(worker, model, publication)
        assert worker.engine.decoder is not None
        if not by_hand:
            worker.engine.decoder = None
        slabs.append(fixtures.generate(worker, arguments)[1])
    assert slabs[0] == slabs[1]
    assert AutoModelForCausalLM.from_pretrained(model).config._attn_implementation == "sdpa"
