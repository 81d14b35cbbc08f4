"""
The Hugging Face engine through the sampler's operations: what is recorded is what the model says,
twice.
"""

import hashlib
import subprocess
import sys

import msgpack
import pytest

import sampler_fixtures as fixtures
from holdfast_worker.operation import BadDataError


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return fixtures.make_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def worker(model):
    worker = fixtures.make_worker()
    fixtures.load(worker, model, fixtures.publish(model, "v1"))
    return worker


def test_boot_reports_device_packages_and_repeats(worker):
    info = worker.boot()
    assert (info["device"], info["repeats"]) == ("cpu", "bits")
    assert set(info["packages"]) == {"torch", "transformers"}


def test_generate_packs_a_slab_as_the_contract_says(worker):
    arguments = fixtures.slab_arguments("v1")
    answer, slab = fixtures.generate(worker, arguments)
    unpacked = msgpack.unpackb(slab)
    assert set(unpacked) == {"slab", "version", "sampling", "groups"}
    assert (unpacked["slab"], unpacked["version"], unpacked["sampling"]) == (
        "slab0",
        "v1",
        arguments["sampling"],
    )
    assert (answer["groups"], answer["samples"]) == (6, 24)
    assert [group["draw"] for group in unpacked["groups"]] == list(range(6))
    for group, draw in zip(unpacked["groups"], arguments["slab"]["draws"]):
        assert set(group) == {"draw", "row_id", "prompt_text", "trajectories"}
        assert (group["row_id"], group["prompt_text"]) == (
            draw["row"]["row_id"],
            draw["row"]["prompt"],
        )
        assert [one["sample"] for one in group["trajectories"]] == [0, 1, 2, 3]
    prompt_tokens = 0
    for one in fixtures.trajectories(slab):
        assert set(one) - {"draw"} == {
            "sample",
            "tokens",
            "action_mask",
            "behaviour_logp",
            "versions",
            "stop",
            "text",
        }
        start, end = one["versions"][0]["start"], len(one["tokens"])
        prompt_tokens += start
        assert one["versions"] == [{"version": "v1", "start": start, "end": end}]
        assert one["action_mask"].tolist() == [0] * start + [1] * (end - start)
        assert not one["behaviour_logp"][:start].any()
        assert 1 <= end - start <= 12
    assert answer["prompt_tokens"] == prompt_tokens


def test_generate_cuts_long_slabs_into_pieces_in_order(worker, monkeypatch):
    arguments = fixtures.slab_arguments("v1")
    whole = fixtures.trajectories(fixtures.generate(worker, arguments)[1])
    monkeypatch.setattr("holdfast_worker.sampler.huggingface.ROWS_MAX", 7)
    pieces = fixtures.trajectories(fixtures.generate(worker, arguments)[1])
    assert [one["tokens"].tolist() for one in pieces] == [one["tokens"].tolist() for one in whole]


REPEAT = """
import sys, hashlib
from pathlib import Path
import sampler_fixtures as fixtures
model = Path(sys.argv[1])
worker = fixtures.make_worker()
fixtures.load(worker, model, fixtures.publish(model, "v1"))
arguments = fixtures.slab_arguments("v1", draws=9, tokens_max=40, top_p=0.9, stop=["a1"])
print(hashlib.sha256(fixtures.generate(worker, arguments)[1]).hexdigest())
"""


def test_generate_repeats_bits_in_another_process(worker, model):
    arguments = fixtures.slab_arguments("v1", draws=9, tokens_max=40, top_p=0.9, stop=["a1"])
    here = hashlib.sha256(fixtures.generate(worker, arguments)[1]).hexdigest()
    command = [sys.executable, "-c", REPEAT, str(model)]
    there = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)}, check=True
    )
    assert there.stdout.split()[-1] == here


def test_generate_ends_rows_where_the_model_ends(model):
    short = fixtures.make_worker(max_model_len=12)
    fixtures.load(short, model, fixtures.publish(model, "v1"))
    _, slab = fixtures.generate(short, fixtures.slab_arguments("v1", tokens_max=60))
    assert max(len(one["tokens"]) for one in fixtures.trajectories(slab)) == 12
    arguments = fixtures.slab_arguments("v1")
    arguments["slab"]["draws"][2]["row"]["prompt"] = "x" * 12
    with pytest.raises(BadDataError, match="row 'row2'.*12 tokens"):
        fixtures.generate(short, arguments)


def test_generate_refuses_a_version_that_is_not_resident(worker):
    answer, slab = fixtures.generate(worker, fixtures.slab_arguments("v9"))
    assert (answer, slab) == ({"not_resident": "v1"}, b"")
    empty = fixtures.make_worker()
    assert fixtures.generate(empty, fixtures.slab_arguments("v1"))[0] == {"not_resident": None}


@pytest.mark.parametrize("recipe", ["tiny_qwen", "tiny_qwen_untied"])
def test_the_noise_is_the_only_initialisation_of_the_first_model(tmp_path, recipe):
    """Another one costs seconds per billion weights on one core, and the noise replaces it."""
    import torch

    directory = fixtures.make_model(tmp_path / "model", recipe)
    engine = fixtures.make_worker().engine
    before = torch.random.get_rng_state()
    engine.open_noise(str(directory))
    assert torch.equal(torch.random.get_rng_state(), before)
    head, embedding = engine.model.get_output_embeddings(), engine.model.get_input_embeddings()
    assert (head.weight is embedding.weight) == (recipe == "tiny_qwen")
