"""Packed rows: the loss and gradient of padded ones, and no token that sees another sequence."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.batch import SequenceData
from holdfast_worker.trainer.forward import policy_forward
from holdfast_worker.trainer.micro_batches import micro_batch
from holdfast_worker.trainer.packing import check_packing, packed_row, use_packed_attention
from trainer_harness import SUPERVISED_LOSS, Trainer

SMALL = {
    **{"vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64},
}


def llama():
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(**SMALL)).train()


def mistral(window=6):
    torch.manual_seed(1)
    return MistralForCausalLM(MistralConfig(**SMALL, sliding_window=window)).train()


def rows_of(lengths, prompt=2):
    random = torch.Generator().manual_seed(3)
    sequences = [
        SequenceData(
            torch.randint(97, (length,), generator=random).numpy().astype("int32"),
            (torch.arange(length) >= prompt).numpy(),
            place,
        )
        for place, length in enumerate(lengths)
    ]
    return micro_batch(sequences, list(range(len(lengths))), columns=set(), device="cpu")


ROWS = rows_of([19, 12, 7, 3, 25])


def gradients(model, *, packed, need=frozenset({"logp"}), chunk_tokens=None, rows=ROWS):
    model.zero_grad()
    live = policy_forward(
        model, rows, need=set(need), temperature=0.9, packed=packed, chunk_tokens=chunk_tokens
    )
    masked = {name: torch.where(rows.mask, value, 0.0) for name, value in live.items()}
    sum(value.sum() for value in masked.values()).backward()
    return masked, {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("make", [llama, mistral])
@pytest.mark.parametrize("chunk_tokens", [None, 9])
def test_packed_rows_give_the_values_and_gradients_of_padded_ones(make, chunk_tokens):
    model = make()
    expected, slopes = gradients(model, packed=False, need={"logp", "entropy"})
    use_packed_attention(model)
    found, packed = gradients(
        model, packed=True, need={"logp", "entropy"}, chunk_tokens=chunk_tokens
    )
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-6, atol=1e-6)
    for name, slope in slopes.items():
        assert (packed[name] - slope).norm() <= 1e-6 * slope.norm(), name


@pytest.mark.parametrize("make", [llama, mistral])
def test_rows_that_are_not_packed_keep_their_bits_under_the_packed_attention(make):
    model = make(
        *([64] if make is mistral else [])
    )  # A window that no row is longer than, as shipped models have.
    expected, slopes = gradients(model, packed=False)
    use_packed_attention(model)
    found, same = gradients(model, packed=False)
    assert torch.equal(found["logp"], expected["logp"])
    assert all(torch.equal(same[name], slope) for name, slope in slopes.items())


def test_a_neighbour_changes_no_bit_of_values_and_gradients_whatever_it_is():
    model = llama()
    use_packed_attention(model)
    both = rows_of([9, 12])
    both.mask[0] = False
    found = []
    for garbage in (3, 77):
        both.tokens[0, :9] = garbage
        found.append(gradients(model, packed=True, rows=both))
    assert torch.equal(found[0][0]["logp"], found[1][0]["logp"])
    embedded = "model.embed_tokens.weight"
    for name in set(found[0][1]) - {embedded}:
        assert torch.equal(found[0][1][name], found[1][1][name]), name
    torch.testing.assert_close(found[0][1][embedded], found[1][1][embedded], rtol=0, atol=1e-7)


def test_a_neighbour_that_is_not_a_number_reaches_no_other_sequence():
    model = llama()
    use_packed_attention(model)
    both = rows_of([9, 12])
    expected = policy_forward(
        model, both, need={"logp"}, temperature=0.9, packed=True, chunk_tokens=None
    )["logp"][1]
    nan = torch.full((1, 9, 1), torch.nan)
    spoil = lambda module, inputs, output: torch.cat([output[:, :9] + nan, output[:, 9:]], dim=1)  # noqa: E731
    model.get_input_embeddings().register_forward_hook(spoil)
    found = policy_forward(
        model, both, need={"logp"}, temperature=0.9, packed=True, chunk_tokens=None
    )["logp"]
    assert found[0][both.mask[0]].isnan().all() and torch.equal(found[1], expected)


def test_positions_begin_again_and_a_row_holds_no_padding():
    row = packed_row(ROWS)
    assert row.inputs["input_ids"].shape == (1, 66) and row.inputs["packed"].lengths == [
        19,
        12,
        7,
        3,
        25,
    ]
    assert row.inputs["position_ids"][0].tolist() == [
        t for length in ROWS.lengths for t in range(length)
    ]
    assert torch.equal(ROWS.tokens.flatten()[row.kept], row.inputs["input_ids"][0])


def test_the_probe_takes_what_packs_and_refuses_what_sees_its_neighbour():
    model = llama()
    use_packed_attention(model)
    check_packing(model, vocabulary=97, device="cpu")
    leaking = llama()
    use_packed_attention(leaking)
    mixing = lambda module, inputs, output: output + output.roll(1, dims=1)  # noqa: E731  (as a convolution over time)
    leaking.model.layers[0].mlp.register_forward_hook(mixing)
    with pytest.raises(BadDataError, match="a token sees the sequence before its own"):
        check_packing(leaking, vocabulary=97, device="cpu")


def supervised(count=12):
    rows = [
        {
            "row_id": str(k),
            "prompt": f"copy {k * 37} =",
            "completion": "x" * (1 + 7 * k % 23),
            "columns": {},
        }
        for k in range(count)
    ]
    return {
        "kind": "supervised",
        "rows": rows,
        "temperature": 1,
        "coef": {},
        "updates": [list(range(count))] * 2,
    }


def test_training_on_packed_rows_takes_the_steps_of_padded_ones_with_fewer_micro_batches(tmp_path):
    taken = {}
    for packed in (False, True):
        trainer = Trainer(tmp_path / str(packed))
        trainer.create()
        trainer.load()
        options = {
            "loss": SUPERVISED_LOSS,
            "tokens_max": 96,
            **({"packing": True} if packed else {}),
        }
        taken[packed] = trainer.train(supervised(), between=("v0", "v1"), **options)["steps"]
    for padded, packed in zip(*taken.values(), strict=True):
        assert packed["loss"] == pytest.approx(padded["loss"], rel=1e-6)
        assert packed["grad_norm"] == pytest.approx(padded["grad_norm"], rel=1e-5)
        assert packed["micro_batches"] < padded["micro_batches"]
