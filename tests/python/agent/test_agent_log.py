"""The agent's own log."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from holdfast_worker.agent.log import log
from holdfast_worker.rank.log import OLDER_KEPT, files_of


def whole(path: Path) -> bytes:
    """What is left of a log, the oldest first."""
    return b"".join(file.read_bytes() for file in reversed(list(files_of(path))))


def test_an_agent_without_a_log_file_prints_the_line_with_its_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log("Ending: told to")
    out, error = capsys.readouterr()
    assert (out, error[2], error[5], error[8:]) == ("", ":", ":", " Ending: told to\n")


def test_the_agents_own_log_is_bounded(tmp_path: Path) -> None:
    script = (
        "from holdfast_worker.agent import log as agent_log; from holdfast_worker.rank import log as rank_log\n"
        "rank_log.RotatingLog.__init__.__kwdefaults__['bytes_max'] = 200\n"
        "agent_log.keep_own_log_small()\n"
        "for number in range(100): agent_log.log(f'word {number}')\n"
        "import sys; print('raw', file=sys.stderr)\n"
    )

    async def run() -> None:
        env = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).resolve().parents[3] / "workers" / "python"),
        }
        with (tmp_path / "agent.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", script, stderr=log, env=env
            )
            assert await process.wait() == 0

    asyncio.run(run())
    assert [len(file.read_bytes()) <= 200 for file in files_of(tmp_path / "agent.log")] == [
        True
    ] * (OLDER_KEPT + 1)
    assert whole(tmp_path / "agent.log").decode().splitlines()[-2].endswith("word 99")
    assert whole(tmp_path / "agent.log").decode().splitlines()[-1] == "raw"
