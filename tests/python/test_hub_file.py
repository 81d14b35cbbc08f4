"""Where an engine listens, as an agent reads it."""

import json
from pathlib import Path

import pytest

from holdfast_worker.hub_file import HubAddress, read_hub, stamp_of

HUB = {"url": "ws://127.0.0.1:1", "token": "t", "engine_boot": "b", "epoch": 3}


def test_read_hub_takes_what_an_engine_writes(tmp_path: Path) -> None:
    path = tmp_path / "hub.json"
    path.write_text(json.dumps(HUB))
    assert read_hub(path) == HubAddress("ws://127.0.0.1:1", "t", 3)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "Expecting property name"),
        ("[]", "is not what an engine writes"),
        ('{"token": "t"}', "it has no url, epoch"),
    ],
)
def test_read_hub_refuses_what_no_engine_has_written(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "hub.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=says):
        read_hub(path)


def test_stamp_of_changes_when_the_file_is_replaced(tmp_path: Path) -> None:
    path, new = tmp_path / "hub.json", tmp_path / "new"
    path.write_text("{}")
    before = stamp_of(path)
    assert stamp_of(path) == before
    new.write_text("{}")
    new.replace(path)
    assert stamp_of(path) != before
