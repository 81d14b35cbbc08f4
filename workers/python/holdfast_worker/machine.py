"""
What the machine reports about a failed process: out-of-memory kills, and broken GPUs. Best effort:
much of it is not readable everywhere.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

KERNEL_LINES_MAX = 10
KERNEL_LINE_CHARS_MAX = 500
XID = re.compile(r"NVRM: Xid \(PCI:(?P<pci>[0-9a-f:.]+)\)", re.IGNORECASE)
GPUS_DIRECTORY = "/proc/driver/nvidia/gpus"


def memory_kills() -> int | None:
    """
    Out-of-memory kills counted by this process's cgroup (version 2, then 1); None if it cannot be
    read.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            roots, name = ["/sys/fs/cgroup"], "memory.events"
        elif "memory" in controllers.split(","):
            roots, name = ["/sys/fs/cgroup/memory"], "memory.oom_control"
        else:
            continue
        # In a container, the path may be the host's and the root ours.
        for file in [
            *(Path(f"{root}{path}") / name for root in roots),
            *(Path(root) / name for root in roots),
        ]:
            try:
                match = re.search(r"^oom_kill (\d+)$", file.read_text(), re.MULTILINE)
            except OSError:
                continue
            if match:
                return int(match[1])
    return None


def kernel_lines(
    pid: int,
    *,
    since_s: float,
    gpus: str | None,
    log: str = "/dev/kmsg",
    gpus_directory: str = GPUS_DIRECTORY,
) -> list[str]:
    """
    The kernel log's lines about this process's out-of-memory kill, and about GPUs that it uses
    (`gpus`: its CUDA_VISIBLE_DEVICES). `since_s` (after boot) excludes older processes with the
    same id. Empty if the log cannot be read.
    """
    try:
        fd = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return []
    found: list[str] = []
    try:
        while record := os.read(
            fd, 8_192
        ):  # One record each: "priority,sequence,microseconds,flags;text".
            head, _, text = record.decode("utf-8", "replace").partition(";")
            line = text.splitlines()[0].strip() if text else ""
            if int(head.split(",")[2]) / 1e6 < since_s:
                continue
            if f"Killed process {pid} " in line:
                found.append(line)
            elif match := XID.search(line):
                gpu = gpu_number(match["pci"], directory=gpus_directory)
                if gpu is None or gpus is None or str(gpu) in gpus.split(","):
                    found.append(line if gpu is None else f"{line} (gpu {gpu})")
    except (OSError, ValueError, IndexError):
        pass  # The end of the log (EAGAIN), or a record that was overwritten while we read.
    finally:
        os.close(fd)
    return [line[:KERNEL_LINE_CHARS_MAX] for line in found[-KERNEL_LINES_MAX:]]


def gpu_number(pci: str, *, directory: str = GPUS_DIRECTORY) -> int | None:
    """
    The number that nvidia-smi gives the GPU at this bus address: they are counted in the order of
    addresses.
    """
    try:
        addresses = sorted(name.lower() for name in os.listdir(directory))
    except OSError:
        return None
    return next(
        (number for number, address in enumerate(addresses) if address.startswith(pci.lower())),
        None,
    )
