"""What stands around a program of the `process` sandbox: separate namespaces, a file system that
has only the interpreter, and limits. Everything here runs in the child, between fork and exec.

The namespaces are users, processes, mounts, network, semaphores and host name. The root is a tmpfs
with the interpreter's directories, read-only. It has no /proc and no /etc. It ends with the
namespace, so nothing has to be removed.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast_worker import linux
from holdfast_worker.rewards.confinement import OOM_SCORE_MAX, SIGNAL_EXIT, limit_at_most, unshare

MIB = 1 << 20
NOBODY = 65534
WORK = "/work"
PROGRAM = "/program.py"
NEW_ROOT = b"/proc"  # Exists everywhere, and is not part of what the interpreter needs.
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Each may be as large as `file_mib`, also one that is only in memory (memfd_create).
FILES_MAX = 64
DESCRIPTORS_MAX = 256
# Processes of a sandbox that are not the program's: the first one of its namespace.
OWN_PROCESSES = 1

NAMESPACES = (
    linux.CLONE_NEWPID
    | linux.CLONE_NEWNS
    | linux.CLONE_NEWNET
    | linux.CLONE_NEWIPC
    | linux.CLONE_NEWUTS
)


@dataclass(frozen=True)
class Bounds:
    """What one process may use. None: no limit here. `memory` is of its address space, or with
    `counts_written` of what it writes to, for runtimes that reserve more than any machine has.
    """

    cpu_s: int | None
    memory_mib: int
    file_mib: int
    processes_max: int | None
    counts_written: bool = False


def walled(program: str | None, bounds: Bounds) -> None:
    """Returns only in the program's process, in an empty directory, with the program's text beside
    it. Its parents stay until it has ended and exit as it did. Raises OSError where the kernel does
    not allow it.
    """
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    unshare(NAMESPACES)
    try:
        # System V's shared memory, which no limit of a process counts.
        Path("/proc/sys/kernel/shmall").write_text("0")
    except OSError:
        pass
    _fork_below()
    _make_root(bounds.file_mib)
    for place in (WORK, "/tmp", "/dev/shm"):
        os.makedirs(place, exist_ok=True)
        os.chmod(place, 0o777)
    if program is not None:
        Path(PROGRAM).write_text(program, "utf-8", "surrogatepass")
    socket.sethostname("sandbox")
    _fork_below()
    os.chdir(WORK)
    _become_nobody()
    limit(bounds)


def unwalled(bounds: Bounds) -> None:
    """Limits alone, in the current directory."""
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    _become_nobody()
    limit(bounds)


def limit(bounds: Bounds) -> None:
    try:
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE_MAX))
    except OSError:
        pass
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    limit_at_most(resource.RLIMIT_CORE, 0)
    limit_at_most(resource.RLIMIT_MSGQUEUE, 0)
    limit_at_most(resource.RLIMIT_NOFILE, FILES_MAX)
    limit_at_most(resource.RLIMIT_FSIZE, bounds.file_mib * MIB)
    memory = resource.RLIMIT_DATA if bounds.counts_written else resource.RLIMIT_AS
    limit_at_most(memory, bounds.memory_mib * MIB)
    if bounds.cpu_s is not None:
        limit_at_most(resource.RLIMIT_CPU, bounds.cpu_s)
    if bounds.processes_max is not None:
        limit_at_most(resource.RLIMIT_NPROC, bounds.processes_max + OWN_PROCESSES)


def _fork_below() -> None:
    """Returns in the child. The parent, whose memory holds what the program must not read, waits
    for it and exits as it did.
    """
    child = os.fork()
    if child == 0:
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    os.closerange(0, DESCRIPTORS_MAX)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else SIGNAL_EXIT - code)


def _become_nobody() -> None:
    """The superuser is bound by no limit and may read everything. A separate user namespace makes
    the count of processes its own, too.
    """
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        try:
            linux.unshare(linux.CLONE_NEWUSER)
        except OSError:
            pass
    linux.drop_capabilities()


def _make_root(size_mib: int) -> None:
    linux.mount(None, b"/", linux.MS_REC | linux.MS_SLAVE)
    flags = linux.MS_NOSUID | linux.MS_NODEV
    linux.mount_tmpfs(NEW_ROOT, flags, f"size={size_mib}m,nr_inodes=16384,mode=0755")
    for place in _visible():
        _show(place)
    for device in DEVICES:
        if os.path.exists(device):
            _show(device, writable=True)
    linux.replace_root(NEW_ROOT)


def _visible() -> list[str]:
    """What the interpreter needs, without what is inside of it already."""
    needed = [*SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    places = sorted({os.path.abspath(place) for place in needed if os.path.lexists(place)})
    return [
        place
        for place in places
        if not any(place.startswith(f"{other}/") for other in places if other != place)
    ]


def _show(place: str, *, writable: bool = False) -> None:
    target = _inside(place)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(place):
        os.symlink(os.readlink(place), target)
        return
    if os.path.isdir(place):
        os.mkdir(target)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    linux.bind(place.encode(), target.encode(), linux.MS_REC)
    if not writable:
        kept = os.statvfs(target).f_flag & (linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        linux.bind(place.encode(), target.encode(), linux.MS_REMOUNT | linux.MS_RDONLY | kept)


def _inside(place: str) -> str:
    return f"{NEW_ROOT.decode()}{place}"


def clean_environment(more: Mapping[str, str]) -> dict[str, str]:
    """Nothing of ours; what makes runs alike. One thread, because numeric libraries start one per
    core otherwise.
    """
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        **dict.fromkeys(threads, "1"),
        **more,
    }
