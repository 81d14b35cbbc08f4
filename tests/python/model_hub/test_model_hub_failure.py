"""Why a model of the hub cannot be used."""

from __future__ import annotations

import pytest

from holdfast_worker.model_hub import failure
from holdfast_worker.model_hub.failure import size_text
from holdfast_worker.model_hub.names import HubName
from hub_cache import COMMIT

NAME = HubName("owner/tiny", "main", COMMIT)


def test_size_text() -> None:
    sizes = [0, 1023, 1024, 1536 << 20, 3 << 40]
    assert [size_text(size) for size in sizes] == ["0 B", "1023 B", "1.0 KiB", "1.5 GiB", "3.0 TiB"]


def test_a_failure_is_one_sentence_with_a_fix_and_says_whose_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for has_token in (True, False):
        monkeypatch.setattr(failure, "has_token", lambda has_token=has_token: has_token)
        wrong = [
            failure.no_repository(NAME),
            failure.no_revision(NAME),
            failure.no_access(NAME, 403),
            failure.refused_token(NAME),
        ]
        here = [failure.no_network(NAME, "down"), failure.no_room(NAME, needed=2, free=1)]
        assert [one.is_input for one in (*wrong, *here)] == [True] * 4 + [False] * 2
        for one in (*wrong, *here):
            text = str(one)
            assert text.startswith("Cannot fetch model") and text.count(". Fix: ") == 1
            assert "\n" not in text


def test_a_failure_of_a_data_set_names_it_and_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure, "has_token", lambda: False)
    monkeypatch.setattr(failure, "endpoint", lambda: "https://hub")
    rows = HubName("owner/rows", "main", None, "dataset")
    for one in (failure.no_repository(rows), failure.no_room(rows, needed=2, free=1)):
        assert str(one).startswith("Cannot fetch data set 'owner/rows")
    assert "directory" not in str(failure.no_repository(rows))
    assert "conditions at https://hub/datasets/owner/rows," in str(failure.no_access(rows, 403))
