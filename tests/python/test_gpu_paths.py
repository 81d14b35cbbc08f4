"""What decides devices, memory and causes on a GPU, as far as it can be judged without one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from holdfast_worker.gpu_memory import SHARING_VARIABLE, drop_garbage, give_back, sharing
from holdfast_worker.operation import BadDataError, RankContext
from holdfast_worker.rank.failures import report, with_log
from holdfast_worker.sampler.publication import Proof, prove
from holdfast_worker.sampler.vllm_engine import GIB, memory_arguments
from holdfast_worker.trainer import numerics
from holdfast_worker.trainer.engines import engine_deepspeed
from holdfast_worker.trainer.model.model_source import ModelSource
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import Publication, SamplerSpec
from sampler_fixtures import SAMPLER_SPEC

GPU_BYTES = 80 * GIB


@pytest.fixture
def gpus(monkeypatch):
    """torch as it answers where there are two GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


def test_choose_device_gives_each_rank_a_gpu_of_its_own(gpus):
    assert [numerics.choose_device("auto", rank) for rank in (0, 1)] == ["cuda:0", "cuda:1"]
    assert numerics.choose_device("cpu", 1) == "cpu"
    with pytest.raises(RuntimeError, match="Cannot place rank 2.*sees 2 GPU"):
        numerics.choose_device("cuda", 2)


def test_deepspeed_is_told_its_accelerator_and_never_looks_for_one(monkeypatch):
    context = RankContext("trainer", "trainer", 1, 1, 2, {}, "", master_port=29500)
    for device, accelerator, local_rank in (("cpu", "cpu", "0"), ("cuda:1", "cuda", "1")):
        environment = {"DS_ACCELERATOR": "cpu"}
        monkeypatch.setattr(engine_deepspeed.os, "environ", environment)
        engine_deepspeed.prepare_environment(context, device)
        assert (environment["DS_ACCELERATOR"], environment["LOCAL_RANK"]) == (
            accelerator,
            local_rank,
        )


def test_open_model_runs_a_mixtures_experts_without_kernels_that_have_no_fixed_order(tmp_path):
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    sizes = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "moe_intermediate_size": 8,
        "num_hidden_layers": 1,
    }
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 32}
    config = Qwen3MoeConfig(**sizes, **heads, num_experts=4, num_experts_per_tok=2)
    Qwen3MoeForCausalLM(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    model = ModelSource(tmp_path).open_model("float32")
    assert model.config._experts_implementation == "eager"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "histc", lambda *_, **__: pytest.fail("histc was called"))
        model(input_ids=torch.arange(8)[None]).logits.sum().backward()


def test_memory_is_given_back_only_on_a_gpu_that_is_shared(monkeypatch):
    emptied = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(1))
    for value, device, times in (("1", "cuda:0", 0), ("2", "cpu", 0), ("2", "cuda:0", 1)):
        monkeypatch.setenv(SHARING_VARIABLE, value)
        emptied.clear()
        give_back(device)
        assert len(emptied) == times
    monkeypatch.delenv(SHARING_VARIABLE)
    assert sharing() == 1
    drop_garbage("cuda:0")
    assert len(emptied) == 2


@pytest.mark.parametrize(
    ("spec", "total", "processes", "expected"),
    [
        ({}, None, 1, {"kv_cache_memory_bytes": GIB}),
        ({"kv_cache_gib": 0.5}, None, 1, {"kv_cache_memory_bytes": GIB // 2}),
        ({}, GPU_BYTES, 1, {}),
        ({}, GPU_BYTES, 2, {"kv_cache_memory_bytes": 16 * GIB, "gpu_memory_utilization": 0.2}),
        ({}, GPU_BYTES, 4, {"kv_cache_memory_bytes": 8 * GIB, "gpu_memory_utilization": 0.1}),
        (
            {"kv_cache_gib": 4},
            GPU_BYTES,
            1,
            {"kv_cache_memory_bytes": 4 * GIB, "gpu_memory_utilization": 0.05},
        ),
        ({"kv_cache_gib": 4, "vllm": {"gpu_memory_utilization": 0.3}}, GPU_BYTES, 2, {}),
    ],
)
def test_memory_arguments_bound_vllms_cache_wherever_it_is_not_alone(
    spec, total, processes, expected
):
    spec = decode(SamplerSpec, {**SAMPLER_SPEC, **spec})
    assert memory_arguments(spec, total_bytes=total, processes=processes) == pytest.approx(expected)


class Starts:
    """An engine whose cold load differs from the resident weights by `off`, and stays."""

    vocabulary, length_max = 100, 64

    def __init__(self, tolerance, off):
        self.cold_tolerance, self.off, self.bias = tolerance, off, 0.0

    def probe(self, sequences):
        return np.full(sum(len(sequence) - 1 for sequence in sequences), self.bias, np.float32)

    def cold_probe(self, directory, sequences):
        self.bias = self.off
        return self.probe(sequences)


def prove_unseen(engine):
    """The proof of an update that the probe does not see."""
    sequences = 8 * [[0] * 32]
    previous = Proof("old", engine.probe(sequences[:1]), engine.probe(sequences))
    publication = Publication(version="v", dir="d", digest="new", tensors=[], files=[])
    return prove(engine, publication, previous)


def test_prove_allows_a_cold_load_what_two_starts_differ_by_and_keeps_its_probe():
    proof = prove_unseen(Starts(tolerance=0.25, off=0.1))
    assert set(proof.long.tolist()) == {np.float32(0.1)}
    for engine in (Starts(tolerance=0.0, off=0.1), Starts(tolerance=0.25, off=0.5)):
        with pytest.raises(BadDataError, match="still uses old weights"):
            prove_unseen(engine)


def test_with_log_keeps_what_looks_like_an_error_before_the_last_lines(tmp_path):
    log = tmp_path / "log"
    missing = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
    log.write_text("starting\n" + missing + "\n" + "in EngineCore\n" * 30)
    found = with_log(
        report(0, cause="exit", message="The process ended with exit code 70"), str(log)
    )
    assert found.log_errors == [missing]
    assert found.log_tail == ["in EngineCore"] * 20
    assert found.cause == "exit"
