"""
Publications that are adapters, into the Hugging Face sampler: beside their own base, and nothing
left stale.
"""

from __future__ import annotations

import numpy as np
import pytest

import sampler_fixtures as fixtures
from holdfast_worker import weights
from holdfast_worker.operation import BadDataError
from holdfast_worker.sampler.publication import probe_sequences
from test_trainer_adapter import LORA, adapted, published, train


@pytest.fixture()
def trainer(tmp_path):
    return adapted(tmp_path, steps=2)


def publication(trainer, version, form="adapter"):
    target = str(trainer.directory / f"{form}_{version}")
    return trainer.call("publish", version=version, dir=target, form=form)


def load(worker, trainer, version, form="adapter"):
    return fixtures.load(worker, trainer.directory / "model", publication(trainer, version, form))


def long_probe(worker):
    return worker.engine.probe(probe_sequences(worker.engine.vocabulary, worker.engine.length_max))


def test_an_adapter_is_served_as_the_merged_model_is_to_rounding_and_as_a_cold_load_to_the_bit(
    trainer,
):
    worker = fixtures.make_worker()
    answer = load(worker, trainer, "v2")
    assert answer["tensors_loaded"] == 28
    served = long_probe(worker)
    sequences = probe_sequences(worker.engine.vocabulary, worker.engine.length_max)
    assert np.array_equal(
        served, worker.engine.cold_probe(str(trainer.directory / "adapter_v2"), sequences)
    )
    load(worker, trainer, "v2", "merged")  # Another kind of publication opens the sampler anew.
    assert np.abs(long_probe(worker) - served).max() < 1e-5


def test_the_next_adapter_replaces_the_one_before_in_place(trainer):
    worker = fixtures.make_worker()
    load(worker, trainer, "v2")
    before, model = long_probe(worker), worker.engine.model
    train(trainer, 2, 4)
    answer = load(worker, trainer, "v4")
    assert worker.engine.model is model and not np.array_equal(long_probe(worker), before)
    assert answer["previous_probe"]["sha256"] != answer["probe"]["sha256"]
    slab = fixtures.generate(worker, fixtures.slab_arguments("v4"))[1]  # And it is what samples.
    assert fixtures.logp_errors(trainer.worker.engine.module, slab).max() < 1e-4


@pytest.mark.parametrize("half", ["lora_A", "lora_B"])
def test_a_tensor_of_the_adapter_that_is_left_stale_is_seen(trainer, half):
    worker = fixtures.make_worker()
    load(worker, trainer, "v2")
    whole = long_probe(worker)
    stale = fixtures.make_worker()
    copy, stale_tensors = stale.engine._copy, []

    def all_but_one(target, source):
        if (not stale_tensors and half == "lora_B" and bool(source.any())) or (
            not stale_tensors and half == "lora_A"
        ):
            return stale_tensors.append(target)
        return copy(target, source)

    stale.engine._copy = all_but_one
    load(stale, trainer, "v2")
    assert stale_tensors and np.abs(long_probe(stale) - whole).max() > 1e-4  # Noise stands there.


def test_a_new_adapter_computes_what_its_base_does(tmp_path):
    trainer = adapted(tmp_path)
    worker = fixtures.make_worker()
    load(worker, trainer, "v0")
    adapter = long_probe(worker)
    load(worker, trainer, "v0", "merged")
    assert np.abs(long_probe(worker) - adapter).max() < 1e-5


def test_an_adapter_beside_another_base_is_refused_before_anything_is_opened(trainer):
    adapter = publication(trainer, "v2")
    trainer.call("create_model", recipe="tiny_qwen", seed=5, dir=str(trainer.directory / "model"))
    worker = fixtures.make_worker()
    with pytest.raises(BadDataError, match="it was trained beside one with"):
        fixtures.load(worker, trainer.directory / "model", adapter)
    assert worker.engine.model is None


def test_what_is_published_and_served_has_the_digest_of_the_policy(trainer):
    adapter = published(trainer, "v2", "adapter")
    assert (
        adapter["digest"] == weights.digest_of_directory(adapter["dir"])
        and LORA["publish"] == "merged"
    )
