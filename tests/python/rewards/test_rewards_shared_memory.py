"""The /dev/shm of a process for user code: its own, bounded, and gone with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast_worker.rewards.confinement import isolation_works
from holdfast_worker.rewards.reward_code import RewardCode
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import RewardProcess
from reward_files import PROCESS, MakePool, items

pytestmark = pytest.mark.skipif(
    isolation_works() is not None, reason="no process is isolated on this machine"
)
SHM = Path("/dev/shm")
NOBODY = 65534
USERS = [None, NOBODY] if os.getuid() == 0 else [None]

SOURCE = """
import mmap, os, tempfile, time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context, shared_memory
from pathlib import Path

FORK = get_context("fork")
THREADS = ThreadPoolExecutor(1)
STARTED = THREADS.submit(os.getpid).result()
KEPT = []

def leaves(completion):
    Path("/dev/shm", completion).write_text("left")
    return len(os.listdir("/dev/shm"))

def size(completion):
    found = os.statvfs("/dev/shm")
    return {"score": found.f_blocks * found.f_frsize, "device": os.stat("/dev/shm").st_dev,
            "flags": found.f_flag & (os.ST_NOSUID | os.ST_NODEV), "mode": os.stat("/dev/shm").st_mode & 0o7777}

def opens(completion):
    KEPT.append(bytearray(48 << 20))
    for _ in range(12):
        KEPT.append(tempfile.TemporaryFile(dir="/dev/shm"))
        KEPT[-1].write(bytes(8 << 20))
    while True:
        time.sleep(1)

def _put(queue, name):
    block = shared_memory.SharedMemory(name)
    block.buf[0] = 7
    block.close()
    queue.put(1)

def shares(completion):
    block, queue = shared_memory.SharedMemory(create=True, size=1 << 20), FORK.Queue()
    child = FORK.Process(target=_put, args=(queue, block.name))
    child.start()
    scored = queue.get() + block.buf[0] + THREADS.submit(lambda: 2).result()
    child.join()
    block.close()
    block.unlink()
    queue.close()
    queue.join_thread()
    return scored
"""

TENSORS = """
import torch
from torch import multiprocessing

def _fill(tensor):
    tensor.fill_(2)

def tensors(completion):
    multiprocessing.set_sharing_strategy(completion)
    shared = torch.zeros(1 << 16).share_memory_()
    child = multiprocessing.get_context("fork").Process(target=_fill, args=(shared,))
    child.start()
    child.join()
    return shared.mean().item()
"""

BEGINNING = """
import ctypes, json, os, sys, tempfile
from pathlib import Path
from holdfast_worker import linux
from holdfast_worker.rewards.confinement import confine, isolation_works
from holdfast_worker.rewards.reward_code import RewardCode

"""
# A process that becomes another user's may not write what a namespace needs in /proc until it is
# dumpable again.
CONFINED = """
def refuse(*_):
    raise fails

if user is not None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    linux.prctl(linux.PR_SET_DUMPABLE, 1)
if fails is not None:
    linux.mount_tmpfs = refuse
    assert isolation_works() is None
if not confine(code, channel_fd=os.dup(1)):
    print("not isolated")
    sys.exit()
"""
SEES = """
pids = [name for name in os.listdir("/proc") if name.isdigit()]
print(json.dumps([len(pids), os.stat("/dev/shm").st_dev]))
"""
FILLS = """
written, part = 0, bytes({size})
why = None
with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
    try:
        while written < {files_max}:
            Path(place, str(written)).write_bytes(part)
            written += 1
    except OSError as error:
        why = error.strerror
print(json.dumps([written, why]))
"""
# In a namespace of its own too.
TAKES_OFF = """
libc = ctypes.CDLL(None)
first = libc.umount2(b"/dev/shm", linux.MNT_DETACH)
linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
second = libc.umount2(b"/dev/shm", linux.MNT_DETACH)
print(json.dumps([first, second, os.stat("/dev/shm").st_dev]))
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "shares.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory in the machine's."""
    with tempfile.TemporaryDirectory(dir=SHM) as directory:
        yield Path(directory)


def confined(
    tried: str, *, user: int | None = None, mount_fails: str | None = None, **process: Any
) -> Any:
    """What `tried`, a program, prints in a process for user code, of this user or of another one."""
    code = RewardCode.of("none.py:f", decode(RewardProcess, {**PROCESS, **process}), style=None)
    program = f"{BEGINNING}code, user, fails = {code!r}, {user}, {mount_fails}\n{CONFINED}{tried}"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as popen:
        assert popen.stdout  # Its standard input is open until it has ended.
        said = popen.stdout.read().decode()
    if said == "not isolated\n":
        pytest.skip(f"no process of user {user} is isolated on this machine")
    return json.loads(said)


def test_what_a_call_leaves_there_stays_for_its_process_and_is_never_the_machines(
    pool_of: MakePool, source: Path
) -> None:
    names = [f"holdfast-left-{os.getpid()}-{number}" for number in range(2)]
    try:
        for _ in range(2):
            pool = pool_of(f"{source}:leaves", processes=1)
            results = pool.score(items(*names), timeout_ms=5_000)
            assert [result["score"] for result in results] == [1, 2], results
            assert not [name for name in names if (SHM / name).exists()]
            pool.close()
    finally:
        for name in names:
            (SHM / name).unlink(missing_ok=True)


def test_without_isolation_it_is_the_machines(pool_of: MakePool, source: Path, place: Path) -> None:
    name = f"{place.name}/left"
    pool = pool_of(f"{source}:leaves", processes=1, isolate=False)
    (result,) = pool.score(items(name), timeout_ms=5_000)
    assert result["outcome"] == "ok"
    assert (SHM / name).read_text() == "left"


def test_its_size_is_memory_gib_and_without_a_limit_the_kernels(
    pool_of: MakePool, source: Path
) -> None:
    def measured(memory_gib: float | None) -> dict[str, Any]:
        pool = pool_of(f"{source}:size", processes=1, memory_gib=memory_gib)
        (result,) = pool.score(items("x"), timeout_ms=5_000)
        return {"size": result["score"], **result["metrics"]}

    limited, unlimited = measured(0.3), measured(None)
    assert 0.3 * (1 << 30) <= limited["size"] < 0.3 * (1 << 30) + 4096
    assert unlimited["size"] > limited["size"]
    for found in (limited, unlimited):
        assert found["device"] != SHM.stat().st_dev
        assert (found["flags"], found["mode"]) == (os.ST_NOSUID | os.ST_NODEV, 0o1777)


def test_files_there_that_are_open_count_as_memory(pool_of: MakePool, source: Path) -> None:
    pool = pool_of(f"{source}:opens", processes=1, memory_gib=0.125)
    (result,) = pool.score(items("x"), timeout_ms=20_000)
    assert result["outcome"] == "crash"
    assert result["error"].endswith("it used more than 0.125 GiB with shared memory (memory_gib)")


def test_memory_that_processes_share_semaphores_and_threads_of_the_import_work(
    pool_of: MakePool, source: Path
) -> None:
    pool = pool_of(f"{source}:shares", processes=1)
    results = pool.score(items("x", "x"), timeout_ms=10_000)
    assert [result["score"] for result in results] == [10, 10], results


def test_tensors_that_processes_share_work(pool_of: MakePool, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "tensors.py").write_text(TENSORS)
    pool = pool_of(f"{tmp_path}/tensors.py:tensors", processes=1)
    results = pool.score(items("file_descriptor", "file_system"), timeout_ms=30_000)
    assert [result["score"] for result in results] == [2, 2], results


def test_a_function_whose_file_is_in_the_machines_keeps_it(
    pool_of: MakePool, place: Path, tmp_path: Path
) -> None:
    (place / "shares.py").write_text(SOURCE)
    (tmp_path / "link").symlink_to(place)
    for directory in (place, tmp_path / "link"):
        pool = pool_of(f"{directory}/shares.py:size", processes=1)
        (result,) = pool.score(items("x"), timeout_ms=5_000)
        assert result["metrics"]["device"] == SHM.stat().st_dev


@pytest.mark.parametrize("named", ["{place}", "{shm}", "{link}/x", "/usr/lib:{place}"])
def test_a_variable_that_names_a_place_in_the_machines_keeps_it(
    pool_of: MakePool,
    source: Path,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    named: str,
) -> None:
    (tmp_path / "link").symlink_to(place)
    monkeypatch.setenv("PYTHONNAMES", named.format(place=place, shm=SHM, link=tmp_path / "link"))
    (result,) = pool_of(f"{source}:size", processes=1).score(items("x"), timeout_ms=5_000)
    assert result["metrics"]["device"] == SHM.stat().st_dev


@pytest.mark.parametrize("why", ["FileNotFoundError", "PermissionError"])
def test_a_process_is_isolated_where_it_cannot_have_one(why: str) -> None:
    pids, device = confined(SEES, mount_fails=why)
    assert pids == 2
    assert device == SHM.stat().st_dev


@pytest.mark.parametrize("user", USERS)
def test_every_users_is_bounded(user: int | None) -> None:
    fills = FILLS.format(size=1 << 20, files_max=256)
    assert confined(fills, user=user, memory_gib=0.125) == [128, "No space left on device"]


def test_empty_files_are_bounded() -> None:
    """One for each page that files may have; two are directories."""
    fills = FILLS.format(size=0, files_max=20_000)
    assert confined(fills, memory_gib=0.0625) == [16_382, "No space left on device"]


@pytest.mark.parametrize("user", [user for user in USERS if (user or os.getuid()) != 0])
def test_a_normal_user_cannot_take_it_off(user: int | None) -> None:
    first, second, device = confined(TAKES_OFF, user=user)
    assert (first, second) == (-1, -1)
    assert device != SHM.stat().st_dev
