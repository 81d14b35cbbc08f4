"""Random generators: kept with a checkpoint, and untouched by what is only tried."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from holdfast_worker.rng_state import restore_rng_state, rng_state, untouched_randomness


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with untouched_randomness():
        yield


def draws() -> list[float]:
    """Of every generator; the normal ones leave half of a pair behind."""
    return [random.gauss(0, 1), float(np.random.randn()), float(torch.randn(()))]


def test_a_saved_state_loads_without_code_and_draws_the_same_again(tmp_path: Path) -> None:
    draws()
    torch.save(rng_state(), tmp_path / "rng.pt")
    expected = [draws(), draws()]
    restore_rng_state(torch.load(tmp_path / "rng.pt", weights_only=True))
    assert [draws(), draws()] == expected


def test_draws_inside_change_none_that_follow_even_if_they_fail() -> None:
    with untouched_randomness():
        expected = draws()
    with pytest.raises(ZeroDivisionError), untouched_randomness():
        draws()
        raise ZeroDivisionError
    assert draws() == expected
