"""A process for user code: what it inherits and starts, and its limits."""

from pathlib import Path
from typing import Any

import pytest

from holdfast_worker.rewards.pool_process import INHERITED, INHERITED_PREFIXES
from reward_files import MakePool, carriers, items, until_carried

HELPED = """
import subprocess
HELPER = subprocess.Popen(["sleep", "1000.625"])

def helped(row):
    subprocess.Popen(["sleep", row["sleep"]])
    return HELPER.poll() is None
"""

SHARES = """
import mmap

def shares(row):
    kept = mmap.mmap(-1, 320 << 20)  # Shared.
    for page in range(0, len(kept), mmap.PAGESIZE):
        kept[page] = 1
    while True:
        pass
"""


def test_user_code_inherits_the_usual_variables_and_those_that_its_reward_names(
    pool_of: MakePool, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "OMP_NUM_THREADS", "LC_ALL"):
        monkeypatch.setenv(name, "1")

    def seen(**process: Any) -> set[str]:
        (result,) = pool_of(f"{file}:variables", **process).score(items("x"), timeout_ms=5_000)
        return set(result["metrics"])

    usual = seen()
    assert {"PATH", "PYTHONPATH", "OMP_NUM_THREADS", "LC_ALL"} <= usual
    assert usual <= {*INHERITED, *(name for name in usual if name.startswith(INHERITED_PREFIXES))}
    assert seen(env=["HF_TOKEN", "NOT_THERE"]) - usual == {"HF_TOKEN"}


def test_cpu_time_is_that_of_one_call_and_a_limit_names_its_setting(
    pool_of: MakePool, file: Path
) -> None:
    pool = pool_of(f"{file}:burn", processes=1, cpu_s=1)
    results = pool.score(items("0.7", "0.7", "1000"), timeout_ms=60_000)
    assert [result["outcome"] for result in results] == ["ok", "ok", "crash"]
    assert results[2]["error"].endswith(
        "killed by SIGXCPU: it used more than 1 s of CPU time (cpu_s)"
    )


def test_limits_that_are_null_are_none(pool_of: MakePool, file: Path) -> None:
    (result,) = pool_of(f"{file}:limits", memory_gib=None, file_mib=None, cpu_s=None).score(
        items("x"), timeout_ms=5_000
    )
    assert result["metrics"] == {"data": -1.0, "file": -1.0, "cpu": -1.0, "core": 0.0}


def test_memory_that_no_limit_of_the_system_counts_has_the_same_limit(
    pool_of: MakePool, tmp_path: Path
) -> None:
    (tmp_path / "shares.py").write_text(SHARES)
    pool = pool_of(f"{tmp_path}/shares.py:shares", processes=1, memory_gib=0.25, cpu_s=None)
    (result,) = pool.score(items("x"), timeout_ms=10_000)
    assert result["outcome"] == "crash"
    assert result["error"].endswith("it used more than 0.25 GiB with shared memory (memory_gib)")


def test_what_the_import_starts_stays_and_what_a_call_starts_ends_with_it(
    pool_of: MakePool, tmp_path: Path
) -> None:
    (tmp_path / "helped.py").write_text(HELPED)
    pool = pool_of(f"{tmp_path}/helped.py:helped", processes=1)
    results = pool.score(items("x", "x", "x", sleep="1000.875"), timeout_ms=5_000)
    assert [result["score"] for result in results] == [1.0, 1.0, 1.0]
    assert not carriers("1000.875")
    until_carried("1000.625")  # Else its end below would show nothing.
    pool.close()
    assert not carriers("1000.625")
