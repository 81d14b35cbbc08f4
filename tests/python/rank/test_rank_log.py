"""Logs of ranks: bounded on the disk, whole at their end, their owner's alone."""

import os
import random
import stat
from pathlib import Path

import pytest

from fake_engine import FakeEngine
from holdfast_worker.rank.failures import log_tail
from holdfast_worker.rank.log import LOG_BYTES_MAX, OLDER_KEPT, RankLog, RotatingLog, files_of
from served_agent import served

MAX = 200


def whole(path: Path) -> bytes:
    """What is left of a log, the oldest first."""
    return b"".join(file.read_bytes() for file in reversed(list(files_of(path))))


@pytest.mark.parametrize("seed", range(20))
def test_a_log_keeps_the_end_of_what_was_written_in_few_small_files(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    path = tmp_path / "deep" / "a.log"
    log = RotatingLog(path, bytes_max=MAX, kept=2)
    written = b""
    for _ in range(chance.randrange(1, 60)):
        piece = bytes(
            chance.choices(
                b"ab\n", weights=(5, 5, chance.choice((0, 1, 3))), k=chance.randrange(0, 900)
            )
        )
        log.write(piece)
        written += piece
        if chance.random() < 0.05:  # Another agent goes on with it.
            log.close()
            log = RotatingLog(path, bytes_max=MAX, kept=2)
        files = list(files_of(path))
        assert 1 <= len(files) <= 3
        assert all(file.stat().st_size <= MAX for file in files)
        assert written.endswith(whole(path))
        assert len(whole(path)) >= min(len(written), MAX)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_log_is_cut_between_lines_and_its_tail_is_read_across_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = RotatingLog(path, bytes_max=MAX, kept=2)
    lines = [f"line {number} {'x' * (number % 40)}" for number in range(100)]
    log.write("".join(f"{line}\n" for line in lines).encode())
    for file in files_of(path):
        assert file.read_text().startswith("line ") and file.read_text().endswith("\n")
    kept = whole(path).decode().splitlines()
    assert len(kept) > len(path.read_text().splitlines())
    assert log_tail(str(path), lines=1000) == kept == lines[-len(kept) :]


def test_a_log_whose_disk_is_full_drops_words_and_raises_nothing() -> None:
    log = RotatingLog(Path("/dev/full"))
    log.write(b"a line\n" * 1000)
    log.close()


def test_what_was_printed_before_drain_is_in_the_log_after_it(tmp_path: Path) -> None:
    log = RankLog(RotatingLog(tmp_path / "a.log"))
    for number in range(200):
        os.write(log.inlet, f"{number}\n".encode())
        log.drain()
        assert (tmp_path / "a.log").read_text().splitlines()[-1] == str(number)
    os.close(log.inlet)
    log.close(5)
    log.close(5)
    log.drain()


def test_a_flood_of_output_fills_no_disk_and_hides_no_failure(tmp_path: Path) -> None:
    assert (LOG_BYTES_MAX, OLDER_KEPT) == (8 << 20, 2)  # As the pages say.
    flood = 3 * (OLDER_KEPT + 1) * LOG_BYTES_MAX

    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.start_group()
        answer = await engine.call("flood", {"bytes": flood, "fail": True})
        (failure,) = answer["failures"]
        assert failure["cause"] == "user_code"
        assert any(line.startswith("the last of ") for line in failure["log_tail"])
        files = list(files_of(Path(failure["log_path"])))
        assert len(files) == OLDER_KEPT + 1
        assert max(file.stat().st_size for file in files) <= LOG_BYTES_MAX
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert (await engine.call("count"))["outputs"] == [
            {"count": 1}
        ]  # The rank and its line live.
        assert len([m for m in engine.seen if m["type"] == "hello"]) == 1

    served(tmp_path, test)
