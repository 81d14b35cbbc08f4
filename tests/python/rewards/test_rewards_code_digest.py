"""What results of a reward function may be kept by."""

import subprocess
import sys
from pathlib import Path

from fake_engine import PACKAGES

SAYS = """
import sys
sys.path[:0] = [{packages!r}, {here!r}]
from holdfast_worker.rewards.process import load_function
from holdfast_worker.rewards.code_digest import code_digest
load_function({source!r})
print(code_digest({source!r}, style={style!r}, settings={settings!r}))
"""


def digest_of(source: str, here: Path, style: str = "holdfast", settings: str | None = None) -> str:
    """As a new process says it."""
    code = SAYS.format(
        packages=str(PACKAGES), here=str(here), source=source, style=style, settings=settings
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_digest_is_that_of_the_file_and_what_it_imports(tmp_path: Path) -> None:
    mine, helper = tmp_path / "mine.py", tmp_path / "helper.py"
    mine.write_text("import helper\ndef f(completion): return 1\ndef g(completion): return 2\n")
    helper.write_text("LIMIT = 1\n")
    first = digest_of(f"{mine}:f", tmp_path)
    assert len(first) == 64
    assert digest_of(f"{mine}:f", tmp_path) == first
    assert digest_of(f"{mine}:g", tmp_path) != first
    helper.write_text("LIMIT = 2\n")
    second = digest_of(f"{mine}:f", tmp_path)
    assert second != first
    (tmp_path / "unused.py").write_text("LIMIT = 3\n")
    assert digest_of(f"{mine}:f", tmp_path) == second
    mine.write_text(mine.read_text() + "# another line\n")
    assert digest_of(f"{mine}:f", tmp_path) != second


def test_what_is_called_in_another_way_has_another_digest(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("def f(completion, answer): return 1\n")
    source = f"{mine}:f"
    digests = [
        digest_of(source, tmp_path),
        digest_of(source, tmp_path, style="verifiers"),
        digest_of(source, tmp_path, settings='{"credit": "all"}'),
        digest_of(source, tmp_path, settings='{"credit": "fraction"}'),
    ]
    assert len({*digests}) == 4
