"""System calls by their numbers: each is tried in a process of its own."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from holdfast_worker import linux

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these calls are Linux's")


def output_of(code: str) -> str:
    """What a process prints that runs `code`."""
    imports = "import os\nfrom pathlib import Path\nfrom holdfast_worker import linux\n"
    return subprocess.check_output([sys.executable, "-c", imports + code], text=True).strip()


def test_prctl_names_the_process() -> None:
    code = "linux.prctl(linux.PR_SET_NAME, b'a-rank')\nprint(Path('/proc/self/comm').read_text())"
    assert output_of(code) == "a-rank"


def test_prctl_makes_the_process_adopt_orphans() -> None:
    code = (
        "linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)\n"
        "read, write = os.pipe()\n"
        "middle = os.fork()\n"
        "if middle == 0:\n"
        "    if os.fork() == 0:\n"
        "        os.read(read, 1)\n"
        "    os._exit(0)\n"
        "os.waitpid(middle, 0)\n"
        "os.write(write, b'x')\n"
        "print(os.wait()[1])\n"
    )
    assert output_of(code) == "0"


def test_dropped_capabilities_are_gone() -> None:
    code = "linux.drop_capabilities()\nprint(Path('/proc/self/status').read_text())"
    status = dict(line.split(":\t", 1) for line in output_of(code).splitlines() if ":\t" in line)
    assert [int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh")] == [0, 0, 0]


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("linux.unshare(0x1)", errno.EINVAL),
        ("linux.mount(None, b'/nowhere', linux.MS_REC | linux.MS_SLAVE)", errno.ENOENT),
    ],
)
def test_a_call_that_fails_raises_with_the_systems_reason(call: str, number: int) -> None:
    code = f"try:\n    {call}\nexcept OSError as error:\n    print(error.errno, error.strerror)"
    found, reason = output_of(code).split(" ", 1)
    if int(found) == errno.EPERM:
        pytest.skip("this process may not ask at all")
    assert (int(found), reason) == (number, os.strerror(number))


def test_other_systems_have_no_prctl_and_need_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise AssertionError("there is no libc to ask")

    monkeypatch.setattr(linux, "_libc", missing)
    monkeypatch.setattr(sys, "platform", "darwin")
    linux.prctl(linux.PR_SET_NAME, b"a-rank")
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(AssertionError):
        linux.prctl(linux.PR_SET_NAME, b"a-rank")
