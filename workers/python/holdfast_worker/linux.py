"""The few system calls that Python lacks. On systems without them (not Linux) each does nothing."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 0x20, 0x1000
MS_REC, MS_PRIVATE, MS_SLAVE = 0x4000, 1 << 18, 1 << 19
MNT_DETACH = 2
# By processor; @see pivot_root(2), which the C library has no function for.
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
CAPABILITY_VERSION_3 = 0x2008_0522


def prctl(option: int, argument: Any) -> None:
    """@see prctl(2). We can ignore failures."""
    if sys.platform == "linux":
        _libc().prctl(option, argument, 0, 0, 0)


def unshare(flags: int) -> None:
    """@see unshare(2). Raises OSError."""
    _checked(_libc().unshare(flags))


def mount(kind: bytes | None, target: bytes, flags: int) -> None:
    """@see mount(2). Raises OSError."""
    _checked(_libc().mount(kind, target, kind, flags, None))


def bind(source: bytes, target: bytes, flags: int) -> None:
    """Shows `source` at `target` too. @see mount(2). Raises OSError."""
    _checked(_libc().mount(source, target, None, MS_BIND | flags, None))


def mount_tmpfs(target: bytes, flags: int, options: str) -> None:
    """@see tmpfs(5). Raises OSError."""
    _checked(_libc().mount(b"tmpfs", target, b"tmpfs", flags, options.encode()))


def replace_root(directory: bytes) -> None:
    """`directory`, a mount, becomes `/`, and nothing else can be reached. @see pivot_root(2).
    Raises OSError.
    """
    number = SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(f"no pivot_root for {os.uname().machine}")
    os.chdir(directory)
    _checked(_libc().syscall(number, b".", b"."))
    _checked(_libc().umount2(b".", MNT_DETACH))
    os.chdir("/")


def drop_capabilities() -> None:
    """For this thread, permanently. @see capset(2). Raises OSError."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _checked(_libc().capset(header, (ctypes.c_uint32 * 6)()))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
