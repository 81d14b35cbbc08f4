"""Rewards that are imported before a run starts: one answer for each, in order."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from fake_engine import PACKAGES
from holdfast_worker.rewards import check
from reward_files import PROCESS


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("PYTHONPATH", str(PACKAGES))

    def check_all(*functions: str) -> list[dict[str, Any]]:
        rewards = [
            {"function": function, "process": PROCESS, "style": None, "settings": None}
            for function in functions
        ]
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(rewards)))
        check.main()
        return json.loads(capsys.readouterr().out)

    return check_all


def test_each_reward_says_which_columns_it_takes_by_name(checked: Any, file: Path) -> None:
    assert checked(f"{file}:of_columns", f"{file}:length") == [
        {"needs": ["answer"], "style": "holdfast"},
        {"needs": [], "style": "holdfast"},
    ]


def test_one_that_cannot_be_imported_hides_no_other(
    checked: Any, file: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import no_such_package\n\ndef score(completion):\n    return 1\n")
    first, second, third = checked(f"{broken}:score", f"{file}:missing", f"{file}:of_columns")
    assert "No module named 'no_such_package'" in first["error"]
    assert f'File "{broken}", line 1' in first["error"]
    assert "missing" in second["error"]
    assert third == {"needs": ["answer"], "style": "holdfast"}


def test_no_reward_has_no_answer(checked: Any) -> None:
    assert checked() == []
