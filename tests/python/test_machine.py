"""What the machine says of a process that failed."""

from __future__ import annotations

from pathlib import Path

from holdfast_worker.machine import gpu_number, kernel_lines

KILL = "3,812,5000000,-;Out of memory: Killed process 4242 (python) total-vm:8000kB\n"
XID = "4,813,5000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python, GPU has fallen off the bus.\n"


def record(tmp_path: Path, text: str) -> str:
    """A kernel log: a real one gives one record a read, so here is only the record that counts."""
    (tmp_path / "kmsg").write_text(text)
    return str(tmp_path / "kmsg")


def test_kernel_lines_finds_this_processs_kill_and_not_an_older_one_of_its_id(
    tmp_path: Path,
) -> None:
    log = record(tmp_path, KILL)
    assert kernel_lines(4242, since_s=4, gpus=None, log=log) == [
        "Out of memory: Killed process 4242 (python) total-vm:8000kB"
    ]
    assert kernel_lines(4242, since_s=6, gpus=None, log=log) == []
    assert kernel_lines(424, since_s=4, gpus=None, log=log) == []
    assert kernel_lines(4242, since_s=4, gpus=None, log=str(tmp_path / "none")) == []


def test_kernel_lines_tells_a_broken_gpu_only_to_those_that_use_it(tmp_path: Path) -> None:
    gpus = tmp_path / "gpus"
    for address in ("0000:1a:00.0", "0000:3B:00.0"):
        (gpus / address).mkdir(parents=True)
    log = record(tmp_path, XID)

    def lines(visible: str | None, directory: Path = gpus) -> list[str]:
        return kernel_lines(7, since_s=0, gpus=visible, log=log, gpus_directory=str(directory))

    assert lines("1")[0].endswith("GPU has fallen off the bus. (gpu 1)")
    assert lines("0") == [] and lines("") == []
    assert len(lines(None)) == 1
    assert lines("0", tmp_path / "none")[0].endswith(
        "off the bus."
    )  # Which one cannot be told: all hear of it.
    assert gpu_number("0000:ff:00", directory=str(gpus)) is None
