"""Sockets that processes listen on, as the kernel says (`ss`, of iproute2)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection


def listening(pids: Collection[int]) -> list[str]:
    """Local addresses of the TCP and UDP sockets that these processes wait on, without ports."""
    found = []
    said = subprocess.run(["ss", "-Hlntup"], capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        owners = {int(pid) for pid in re.findall(r"pid=(\d+),", line)}
        if owners & set(pids):
            found.append(line.split()[4].rpartition(":")[0])
    return found


LOOPBACK = {"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"}
