"""A file as a program: what it may read, draw and stop at."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch

from algorithm_files import PLAIN, program, recorded
from holdfast_worker.algorithm import AlgorithmError
from holdfast_worker.algorithm.describe import describe
from loss_model import Model


def test_reading_by_the_data_is_refused() -> None:
    source = "def loss(x, c):\n    extra = x.ref_logp if len(x.logp) == 1 else 0\n"
    source += "    return {'loss': ('token_mean', x.logp + extra)}\n"
    model = Model([[-1.0]], {"ref_logp": [[-1.0]]})
    with pytest.raises(
        AlgorithmError,
        match="Cannot read 'ref_logp' in loss.. of my.py because it was not read when",
    ):
        model.step(program(source), [[0]])


def test_opening_a_file_moves_no_random_number() -> None:
    source = (
        "import random, torch, numpy as np\nrandom.random(), torch.rand(3), np.random.rand()\n"
        + PLAIN
    )
    draws: list[Callable[[], float]] = [
        lambda: float(torch.rand(())),
        lambda: float(np.random.rand()),
    ]
    torch.manual_seed(1)
    np.random.seed(1)
    expected = [draw() for draw in draws]
    torch.manual_seed(1)
    np.random.seed(1)
    describe(recorded(source))
    assert [draw() for draw in draws] == expected


def test_a_breakpoint_is_passed_over_in_the_dry_run_and_refused_in_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "breakpointhook", sys.breakpointhook)
    source = "def loss(x, c):\n    breakpoint()\n    return {'loss': ('token_mean', x.logp)}\n"
    assert describe(recorded(source))["inputs"] == ["logp"]
    with pytest.raises(AlgorithmError, match="in a run: try the file with `loss try"):
        Model([[-1.0]]).step(program(source), [[0]])
