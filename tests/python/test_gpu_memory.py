"""Whether a process gives its GPU's cached memory back after an operation."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from holdfast_worker import gpu_memory
from holdfast_worker.gpu_memory import SHARING_VARIABLE, drop_garbage, give_back, sharing


@pytest.fixture
def emptied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A torch whose cache says when it is emptied."""
    told: list[str] = []
    cuda = SimpleNamespace(empty_cache=lambda: told.append("emptied"))
    monkeypatch.setattr(gpu_memory, "_torch", lambda: SimpleNamespace(cuda=cuda))
    return told


@pytest.mark.parametrize(
    ("value", "count"), [(None, 1), ("", 1), ("0", 1), ("1", 1), ("2", 2), ("3", 3)]
)
def test_a_process_shares_its_gpu_with_as_many_as_the_engine_says_and_at_least_itself(
    monkeypatch: pytest.MonkeyPatch, value: str | None, count: int
) -> None:
    monkeypatch.delenv(SHARING_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(SHARING_VARIABLE, value)
    assert sharing() == count


@pytest.mark.parametrize(
    ("device", "processes", "times"), [("cuda", "2", 1), ("cuda", "1", 0), ("cpu", "2", 0)]
)
def test_cached_memory_goes_back_only_where_another_process_needs_the_gpu(
    monkeypatch: pytest.MonkeyPatch, emptied: list[str], device: str, processes: str, times: int
) -> None:
    monkeypatch.setenv(SHARING_VARIABLE, processes)
    give_back(device)
    assert emptied == ["emptied"] * times


@pytest.mark.parametrize(("device", "times"), [("cuda", 1), ("cpu", 0)])
def test_a_model_that_goes_gives_its_memory_back_even_on_a_gpu_of_its_own(
    monkeypatch: pytest.MonkeyPatch, emptied: list[str], device: str, times: int
) -> None:
    monkeypatch.delenv(SHARING_VARIABLE, raising=False)
    drop_garbage(device)
    assert emptied == ["emptied"] * times
