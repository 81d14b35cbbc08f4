"""What can change the bits of a step: chosen at boot, and recorded whole."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy
import pytest
import torch

from holdfast_worker.trainer import numerics
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import TrainerSpec
from trainer_harness import SPEC

LORA = {
    "rank": 4,
    "alpha": 8,
    "dropout": 0.0,
    "targets": "all_linear",
    "quantize": None,
    "publish": "merged",
}


def spec(**changes: Any) -> TrainerSpec:
    return decode(TrainerSpec, {**SPEC, **changes})


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_a_machine_without_a_gpu_trains_on_the_cpu_unless_one_is_required(no_gpu: None) -> None:
    assert [numerics.choose_device(wanted, 0) for wanted in ("auto", "cpu")] == ["cpu", "cpu"]
    with pytest.raises(RuntimeError, match="trainer.device cuda because torch .* sees no GPU: set"):
        numerics.choose_device("cuda", 0)
    with pytest.raises(ValueError, match="trainer.device is 'tpu': use auto, cpu or cuda"):
        numerics.choose_device("tpu", 0)


def test_a_step_has_one_seed_that_a_redo_draws_again() -> None:
    assert numerics.step_seed(0, number=1, rank=0) == numerics.step_seed(0, number=1, rank=0)
    assert numerics.step_seed(0, number=1, rank=0) == 8_586_695_780_645_454_549


def test_seeds_differ_by_run_step_and_rank_and_are_what_torch_takes() -> None:
    seeds = {
        numerics.step_seed(seed, number=number, rank=rank)
        for seed in (0, 1)
        for number in range(50)
        for rank in range(4)
    }
    assert len(seeds) == 400
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_dropout_of_the_weights_or_of_the_adapter_is_dropout() -> None:
    assert not numerics.has_dropout(spec(dropout=0.0, lora=None))
    assert not numerics.has_dropout(spec(dropout=0.0, lora=LORA))
    assert numerics.has_dropout(spec(dropout=0.1, lora=None))
    assert numerics.has_dropout(spec(dropout=0.0, lora={**LORA, "dropout": 0.1}))


def test_adapters_need_a_vocabulary_and_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    present = {"peft", "bitsandbytes"}

    def version(name: str) -> str:
        if name not in present:
            raise numerics.metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(numerics.metadata, "version", version)
    numerics.check_adapter(spec(lora=None, head="score"))
    numerics.check_adapter(spec(lora={**LORA, "quantize": "nf4"}))
    with pytest.raises(ValueError, match="its model has a value head: train it whole"):
        numerics.check_adapter(spec(lora=LORA, head="value"))
    present.remove("bitsandbytes")
    numerics.check_adapter(spec(lora=LORA))
    with pytest.raises(ValueError, match="trainer.lora.quantize because .* has no bitsandbytes"):
        numerics.check_adapter(spec(lora={**LORA, "quantize": "nf4"}))
    present.remove("peft")
    with pytest.raises(ValueError, match="with trainer.lora because its environment has no peft"):
        numerics.check_adapter(spec(lora=LORA))


def test_the_environment_fixes_threads_and_keeps_what_the_user_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        os, "environ", {"OMP_NUM_THREADS": "64", "CUBLAS_WORKSPACE_CONFIG": ":16:8"}
    )
    numerics.prepare_environment(3)
    assert os.environ == {
        "OMP_NUM_THREADS": "3",
        "MKL_NUM_THREADS": "3",
        "MKL_DYNAMIC": "FALSE",
        "OMP_DYNAMIC": "FALSE",
        "CUBLAS_WORKSPACE_CONFIG": ":16:8",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }


def test_one_seed_gives_every_generator_the_same_numbers_again() -> None:
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()

    def drawn(seed: int) -> list[float]:
        numerics.make_deterministic("cpu", threads=1, seed=seed)
        return [random.random(), float(numpy.random.rand()), torch.rand(1).item()]

    try:
        first = drawn(2**40)
        assert drawn(2**40) == first
        assert all(a != b for a, b in zip(drawn(1), first))
        assert torch.get_num_threads() == 1
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(strict)


def test_the_record_names_only_what_computes() -> None:
    plain = numerics.describe(spec(engine="torch", zero=0, lora=None), device="cpu", world_size=1)
    assert plain["packages"].keys() >= {"torch", "transformers", "numpy", "bitsandbytes"}
    assert not plain["packages"].keys() & {"deepspeed", "peft"}
    assert plain["device"] == f"cpu {torch.backends.cpu.get_cpu_capability()}"
    assert (plain["zero"], plain["micro_batch_tokens_max"], plain["lora"]) == (0, 0, None)
    sharded = numerics.describe(spec(engine="deepspeed", zero=2), device="cpu", world_size=4)
    assert (sharded["zero"], sharded["world_size"]) == (2, 4)


def test_the_record_of_an_adapter_is_what_decides_its_bits() -> None:
    def shape(**changes: Any) -> Any:
        return numerics.describe(spec(**changes), device="cpu", world_size=1)["lora"]

    assert shape(lora=LORA, seed=7) == {
        "rank": 4,
        "alpha": 8,
        "dropout": 0.0,
        "targets": "all_linear",
        "quantize": None,
        "seed": 7,
    }
    assert shape(lora={**LORA, "publish": "adapter"}) == shape(lora=LORA)
