"""The few system calls that Python lacks. On systems without them (not Linux) each does nothing."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_SLAVE = 2, 4, 8, 0x4000, 1 << 19
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


def drop_capabilities() -> None:
    """For this thread, permanently. @see capset(2). Raises OSError."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _checked(_libc().capset(header, (ctypes.c_uint32 * 6)()))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
