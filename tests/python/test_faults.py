import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast_worker.faults import Fault, Faults, parse_faults, phase_of


def test_parse_faults_reads_the_grammar_and_takes_rank_0_where_none_is_named() -> None:
    assert parse_faults(
        "kill:trainer.1@micro_batch:17, stop:sampler@op:2,kill:engine@append:9,"
    ) == [
        Fault("kill:trainer.1@micro_batch:17", "kill", "trainer", 1, "micro_batch", 17),
        Fault("stop:sampler@op:2", "stop", "sampler", 0, "op", 2),
        Fault("kill:engine@append:9", "kill", "engine", 0, "append", 9),
    ]
    assert parse_faults("") == []


@pytest.mark.parametrize(
    "text",
    [
        "kill",
        "kill:trainer",
        "kill:trainer@op",
        "kill:trainer@op:0",
        "kill:moon@op:1",
        "melt:trainer@op:1",
        "kill:trainer@tick:1",
    ],
)
def test_parse_faults_refuses_what_it_cannot_read_and_says_the_grammar(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected KIND:PLACE\[\.RANK\]@EVENT:N"):
        parse_faults(text)


def firing(tmp_path: Path, text: str, **place: object) -> tuple[Faults, list[str]]:
    fired: list[str] = []
    actions = {"kill": lambda: fired.append("kill"), "drop": lambda: fired.append("drop")}
    options = {"place": "trainer", "rank": 0, **place}
    return Faults(
        parse_faults(text), directory=str(tmp_path / "faults"), actions=actions, **options
    ), fired


def test_faults_at_fires_at_the_nth_event_of_its_name_only(tmp_path: Path) -> None:
    faults, fired = firing(tmp_path, "kill:trainer@op:2")
    faults.at("op", "training")
    faults.at("frame", "training")
    assert fired == []
    faults.at("op", "training")
    assert fired == ["kill"]


def test_faults_of_another_place_or_rank_do_not_fire(tmp_path: Path) -> None:
    for place in ({"place": "sampler"}, {"rank": 1}):
        faults, fired = firing(tmp_path, "kill:trainer@op:1", **place)
        faults.at("op", "training")
        assert fired == []


def test_a_fault_fires_once_per_run_whatever_the_number_of_processes(tmp_path: Path) -> None:
    for expected in (["kill"], []):
        faults, fired = firing(tmp_path, "kill:trainer@op:1")
        faults.at("op", "training")
        assert fired == expected
    assert [path.name for path in (tmp_path / "faults").iterdir()] == ["kill:trainer@op:1"]


def test_the_marker_is_there_before_the_fault_acts(tmp_path: Path) -> None:
    seen: list[bool] = []
    marker = tmp_path / "faults" / "kill:trainer@op:1"
    actions = {"kill": lambda: seen.append(marker.exists())}
    Faults(
        parse_faults(marker.name), place="trainer", directory=str(marker.parent), actions=actions
    ).at("op", "other")
    assert seen == [True]


def test_faults_refuses_a_kind_its_place_does_not_have_and_a_missing_directory(
    tmp_path: Path,
) -> None:
    with pytest.raises(ValueError, match="trainer has no fault of kind 'disk_full'"):
        Faults(parse_faults("disk_full:trainer@op:1"), place="trainer", directory=str(tmp_path))
    with pytest.raises(ValueError, match="HOLDFAST_FAULTS_DIR is not set"):
        Faults(parse_faults("kill:trainer@op:1"), place="trainer")


def test_faults_at_lists_every_event_with_its_phase(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    faults = Faults([], place="sampler", rank=1, events_path=str(path))
    faults.at("op", "publication")
    faults.at("op", "generation")
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"place": "sampler", "rank": 1, "event": "op", "n": 1, "phase": "publication"},
        {"place": "sampler", "rank": 1, "event": "op", "n": 2, "phase": "generation"},
    ]


SCRIPT = """
from holdfast_worker.faults import Faults
Faults.from_environment("trainer").at("op", "other")
print("alive")
"""


def environment(tmp_path: Path, fault: str) -> dict[str, str]:
    return {**os.environ, "HOLDFAST_FAULT": fault, "HOLDFAST_FAULTS_DIR": str(tmp_path)}


def test_kill_ends_the_process_by_sigkill_and_the_next_one_lives(tmp_path: Path) -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment(tmp_path, "kill:trainer@op:1"),
            capture_output=True,
            check=False,
        )
        for _ in range(2)
    ]
    assert [run.returncode for run in runs] == [-signal.SIGKILL, 0]
    assert [run.stdout for run in runs] == [b"", b"alive\n"]


def test_stop_freezes_the_process_until_it_is_continued(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env=environment(tmp_path, "stop:trainer@op:1"),
        stdout=subprocess.PIPE,
    )
    _, status = os.waitpid(child.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    os.kill(child.pid, signal.SIGCONT)
    assert child.communicate()[0] == b"alive\n"


def test_phase_of_knows_what_a_run_is_doing() -> None:
    assert phase_of("sampler", "load") == "publication"
    assert phase_of("trainer", "load") == "other"
    assert phase_of("sampler", "generate") == "generation"
