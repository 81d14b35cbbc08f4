"""Isolates a reward's process.

It becomes two: a supervisor, which runs no user code and ends everything below it when the pool or
the user's process ends; and the process for user code, with limits and, if the machine
allows it, separate namespaces. The supervisor is a subreaper, so processes that detach by `setsid`
and double forks stay below it.
"""

from __future__ import annotations

import math
import os
import resource
import select
import signal
import sys
from pathlib import Path

from holdfast_worker import linux
from holdfast_worker.process_table import end_below, kill_group
from holdfast_worker.rewards.reward_code import RewardCode

STDIN = 0
WOKEN_BYTES = 4096
OOM_SCORE_MAX = 1000  # When memory runs out, the kernel takes these processes before any of ours.
# Processes, and System V's shared memory, which outlives its process and is in nobody's account.
NAMESPACES = linux.CLONE_NEWPID | linux.CLONE_NEWIPC
SIGNAL_EXIT = 128  # As shells do: a process that was ended by signal N has the exit code 128 + N.
GIB, MIB = 1 << 30, 1 << 20
SHARED_MEMORY = "/dev/shm"


def isolation_works() -> str | None:
    """None if a process can have separate namespaces here; else why not. Tried in a child, because
    half of it cannot be undone.
    """
    if sys.platform != "linux":
        return f"{sys.platform} has no process namespaces"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            unshare(NAMESPACES)
            inner = os.fork()
            if inner == 0:
                _mount_proc()
                os._exit(0)
            outcome = b"" if os.waitpid(inner, 0)[1] == 0 else b"/proc cannot be mounted"
        except OSError as error:
            outcome = str(error).encode()
        os.write(writing, outcome)
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read().decode() or None


def confine(code: RewardCode, *, channel_fd: int) -> bool:
    """Returns only in the process that runs user code: whether it is isolated. Its standard input,
    which the pool holds open, stays with the supervisor. Must run before any thread starts.
    """
    isolated = code.isolate and isolation_works() is None
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    if isolated:
        unshare(NAMESPACES)
    _fork_below(channel_fd)
    if isolated:
        _mount_proc()
        _mount_shared_memory(code)
        _limit_system_v(code)
        _fork_below(
            channel_fd
        )  # The first process of a namespace ignores most signals: user code is not it.
        if os.getuid() != 0:
            # Those that the user namespace gave: with them /proc could be taken off again.
            linux.drop_capabilities()
    os.setsid()  # So that `kill(0, ...)` reaches nobody else.
    linux.prctl(
        linux.PR_SET_CHILD_SUBREAPER, 1
    )  # What a call leaves behind is below its process, and is found there.
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, STDIN)
    os.close(null)
    _limit(code)
    return isolated


def unshare(namespaces: int) -> None:
    """With CLONE_NEWPID, the next child is the first process of a namespace. User code there sees
    no process of ours, and always dies with the namespace.
    """
    uid, gid = os.getuid(), os.getgid()
    linux.unshare(namespaces | (linux.CLONE_NEWUSER if uid != 0 else 0))
    if uid != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def _mount_proc() -> None:
    """In the first process of a namespace: mounts a separate /proc for it and its children. Later
    mounts of the machine stay visible.
    """
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount(None, b"/", linux.MS_REC | linux.MS_SLAVE)
    linux.mount(b"proc", b"/proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)


def _mount_shared_memory(code: RewardCode) -> None:
    """In the first process of a namespace: mounts a separate /dev/shm, which bounds what is left
    there and ends with it. A process that cannot have one is isolated all the same.
    """
    if _needs_the_machines(code):
        return
    options = "mode=1777"
    if code.memory_gib is not None:
        page = resource.getpagesize()
        pages = math.ceil(code.memory_gib * GIB / page)
        # An empty file has no bytes, but the kernel keeps about 1 KiB for it.
        options += f",size={pages * page},nr_inodes={pages}"
    try:
        linux.mount_tmpfs(SHARED_MEMORY.encode(), linux.MS_NOSUID | linux.MS_NODEV, options)
    except OSError:
        pass


def _needs_the_machines(code: RewardCode) -> bool:
    """Whether what a process starts with is in the machine's /dev/shm, also through links: the
    function, its settings, the interpreter, the directory, or what a variable names.
    """
    named = [code.function.rpartition(":")[0], os.getcwd(), *sys.path, *os.environ.values()]
    paths = [path for text in named for path in text.split(os.pathsep) if path.startswith("/")]
    machines = f"{SHARED_MEMORY}/"
    return machines in (code.settings or "") or any(
        f"{os.path.realpath(path)}/".startswith(machines) for path in paths
    )


def _fork_below(channel_fd: int) -> None:
    """
    Returns in the child. The parent stays until the child has ended, or the pool has closed our
    standard input; it ends what is left below it and takes over the child's exit code.
    """
    child = os.fork()
    if child == 0:
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    os.close(channel_fd)
    code = _watch(child)
    kill_group(child)
    end_below(os.getpid())
    os._exit(code)


def _watch(child: int) -> int:
    """Without a thread: a process whose children get a namespace must have none."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # It must be caught, or no byte is written.
    signal.set_wakeup_fd(wake)
    poll = select.poll()
    poll.register(STDIN, 0)  # No events asked for: a hang-up always wakes it.
    poll.register(woken, select.POLLIN)
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            return (
                os.WEXITSTATUS(status)
                if os.WIFEXITED(status)
                else SIGNAL_EXIT + os.WTERMSIG(status)
            )
        if pid != 0:
            continue  # An orphan.
        events = dict(poll.poll())
        if STDIN in events:
            return 0
        os.read(woken, WOKEN_BYTES)


def _limit(code: RewardCode) -> None:
    """
    @see RewardCode. Memory is what is written to, not what is reserved: CUDA reserves more than any machine has.
    """
    try:
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE_MAX))
    except OSError:
        pass
    limit_at_most(resource.RLIMIT_CORE, 0)
    if code.memory_gib is not None:
        limit_at_most(resource.RLIMIT_DATA, int(code.memory_gib * GIB))
    if code.file_mib is not None:
        limit_at_most(resource.RLIMIT_FSIZE, int(code.file_mib * MIB))


def _limit_system_v(code: RewardCode) -> None:
    """In the namespace of the process, whose segments end with it."""
    if code.memory_gib is None:
        return
    try:
        pages = int(code.memory_gib * GIB) // resource.getpagesize()
        Path("/proc/sys/kernel/shmall").write_text(str(pages))
    except OSError:
        pass  # /proc/sys cannot be written everywhere.


def limit_at_most(kind: int, value: int) -> None:
    """Keeps an existing lower limit."""
    _, hard = resource.getrlimit(kind)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (bound, bound))


if __name__ == "__main__":
    print(isolation_works() or "")
