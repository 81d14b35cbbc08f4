"""Names of models at the hub."""

from __future__ import annotations

import pytest

from holdfast_worker.model_hub.names import HubName, hub_name
from hub_cache import COMMIT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b", HubName("a/b", "main", None)),
        ("a/b@refs/pr/1", HubName("a/b", "refs/pr/1", None)),
        (f"a/b@{COMMIT}", HubName("a/b", COMMIT, COMMIT)),
        (f"a/b@v1@{COMMIT}", HubName("a/b", "v1", COMMIT)),
        *((text, None) for text in ("/a/b", "a", "a/b/c", "a/b@", "../a", "a/.b")),
        ("a/b@v1@c1899de", None),
    ],
)
def test_hub_name_reads_names_as_the_engine_does(text: str, expected: HubName | None) -> None:
    assert hub_name(text) == expected
    if expected is not None:
        assert hub_name(str(expected)) == expected
        assert expected.what == "model"
        dataset = hub_name(text, "dataset")
        assert dataset is not None and (dataset.kind, dataset.what) == ("dataset", "data set")
