"""
Publications into the Hugging Face engine: nothing broken gets in, and a tensor left stale is seen.
"""

import gc
import json
import shutil

import numpy as np
import pytest

import sampler_fixtures as fixtures
from holdfast_worker.operation import BadDataError, OperationIO
from holdfast_worker.sampler.publication import probe_sequences

RECIPES = ["tiny_qwen", "tiny_qwen_untied"]


@pytest.fixture(scope="module", params=RECIPES)
def model(request, tmp_path_factory):
    directory = fixtures.make_model(tmp_path_factory.mktemp(request.param) / "tiny", request.param)
    gc.freeze()  # Each cold load collects garbage: it need not walk what imports have made.
    yield directory
    gc.unfreeze()


@pytest.fixture()
def worker(model):
    worker = fixtures.make_worker()
    fixtures.load(worker, model, fixtures.publish(model, "v1"))
    return worker


def long_probe(worker):
    return worker.engine.probe(probe_sequences(worker.engine.vocabulary, worker.engine.length_max))


def cold_probe(worker, publication):
    sequences = probe_sequences(worker.engine.vocabulary, worker.engine.length_max)
    return worker.engine.cold_probe(publication["dir"], sequences)


def leave_stale(worker, name):
    """The next publication does not reach this tensor."""
    target = worker.engine.model.state_dict(keep_vars=True)[name]
    copy = worker.engine._copy
    worker.engine._copy = lambda tensor, source: None if tensor is target else copy(tensor, source)


def test_load_on_noise_equals_a_cold_load_bit_for_bit(worker, model):
    assert np.array_equal(long_probe(worker), cold_probe(worker, fixtures.publish(model, "v1")))


def test_load_answers_both_probes_and_counts_tensors(worker, model, tmp_path):
    shutil.copytree(model, tmp_path / "tiny")
    publication = fixtures.publish_changed(tmp_path / "tiny", "v2", names=None, seed=2)
    before = worker.operations["probe"]({}, OperationIO.alone())
    answer = fixtures.load(worker, model, publication)
    assert answer["version"] == "v2"
    assert answer["tensors_loaded"] == len(publication["tensors"])
    assert answer["previous_probe"] == before
    assert answer["probe"] == worker.operations["probe"]({}, OperationIO.alone())
    assert answer["probe"]["sha256"] != before["sha256"]
    assert fixtures.load(worker, model, publication) == answer


def test_load_first_answers_no_previous_probe(model):
    fresh = fixtures.make_worker()
    assert fixtures.load(fresh, model, fixtures.publish(model, "v1"))["previous_probe"] is None


def test_load_is_refused_whole_when_a_file_is_corrupted(worker, model, tmp_path):
    shutil.copytree(model, tmp_path / "tiny")
    publication = fixtures.publish_changed(tmp_path / "tiny", "v2", names=None, seed=2)
    path = tmp_path / "tiny_v2" / fixtures.WEIGHTS_NAME
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    before = long_probe(worker)
    with pytest.raises(BadDataError, match="model.safetensors.*not the recorded one"):
        fixtures.load(worker, model, publication)
    assert np.array_equal(long_probe(worker), before)
    assert fixtures.generate(worker, fixtures.slab_arguments("v2"))[0] == {"not_resident": "v1"}


def broken_manifest(publication, kind):
    """A manifest that does not say what its files hold."""
    broken = json.loads(json.dumps(publication))
    if kind == "hash":
        broken["tensors"][3]["sha256"] = "0" * 64
    elif kind == "missing":
        broken["tensors"].append({**broken["tensors"][0], "name": "model.extra.weight"})
    else:
        del broken["tensors"][3]
    return broken


@pytest.mark.parametrize(
    ("kind", "says"),
    [("hash", "not the recorded one"), ("missing", "is missing"), ("more", "not in its manifest")],
)
def test_load_is_refused_when_tensors_are_not_the_manifests(worker, model, tmp_path, kind, says):
    shutil.copytree(model, tmp_path / "tiny")
    publication = fixtures.publish_changed(tmp_path / "tiny", "v2", names=None, seed=2)
    with pytest.raises(BadDataError, match=says):
        fixtures.load(worker, model, broken_manifest(publication, kind))
    assert fixtures.generate(worker, fixtures.slab_arguments("v1"))[0] == {"not_resident": None}
    fixtures.load(worker, model, publication)
    assert np.array_equal(long_probe(worker), cold_probe(worker, publication))


def test_load_is_refused_when_a_tensor_of_the_model_is_left_out(worker, model, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(model, tmp_path / "tiny")
    path = tmp_path / "tiny" / fixtures.WEIGHTS_NAME
    tensors = load_file(path)
    del tensors["model.norm.weight"]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(BadDataError, match="lacks tensor 'model.norm.weight'"):
        fixtures.load(worker, model, fixtures.publish(tmp_path / "tiny", "v2"))


def test_probe_fails_when_any_one_tensor_of_a_publication_is_left_stale(worker, model, tmp_path):
    shutil.copytree(model, tmp_path / "tiny")
    first = fixtures.publish(model, "v1")
    publication = fixtures.publish_changed(tmp_path / "tiny", "v2", names=None, seed=2)
    cold = cold_probe(worker, publication)
    for entry in publication["tensors"]:
        fixtures.load(worker, model, first)
        leave_stale(worker, entry["name"])
        fixtures.load(worker, model, publication)
        assert not np.array_equal(long_probe(worker), cold), entry["name"]
        del worker.engine._copy
    fixtures.load(worker, model, first)
    fixtures.load(worker, model, publication)
    assert np.array_equal(long_probe(worker), cold)


def test_load_fails_by_the_cold_load_when_what_changed_was_left_stale(worker, model, tmp_path):
    shutil.copytree(model, tmp_path / "tiny")
    name = "model.layers.1.mlp.down_proj.weight"
    publication = fixtures.publish_changed(tmp_path / "tiny", "v2", names={name}, seed=2)
    leave_stale(worker, name)
    with pytest.raises(BadDataError, match="still uses old weights"):
        fixtures.load(worker, model, publication)
    assert worker.version is None
    del worker.engine._copy
    fixtures.load(worker, model, publication)
    assert np.array_equal(long_probe(worker), cold_probe(worker, publication))


def test_load_leaves_the_verdict_on_an_unseen_update_to_a_cold_load(worker, model, tmp_path):
    """
    A probe that rounds stands for updates that arithmetic hides: equal probes alone must not fail a
    publication.
    """
    shutil.copytree(model, tmp_path / "tiny")
    publication = fixtures.publish_changed(
        tmp_path / "tiny", "v2", names={"model.norm.weight"}, seed=2
    )
    directories = []
    worker.engine.probe = lambda sequences: np.zeros(8, np.float32)
    worker.engine.cold_probe = lambda directory, sequences: (
        directories.append(directory) or np.zeros(8, np.float32)
    )
    worker.proof = None
    assert fixtures.load(worker, model, publication)["version"] == "v2"
    assert directories == [publication["dir"]]
