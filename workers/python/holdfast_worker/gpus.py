"""
The GPUs of this host, as its agent announces them to the engine. `visibleGpus` in `workers/fleet/gpus.ts`
reads the engine's own machine in the same way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal


def visible_gpus(env: Mapping[str, str], *, devices_directory: str = "/dev") -> list[str]:
    """
    The entries of CUDA_VISIBLE_DEVICES if it is set, because a cluster's scheduler sets it; else
    0, 1, ... in the order of nvidia-smi.
    """
    listed = env.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        entries = [entry.strip() for entry in listed.split(",")]
        # CUDA ignores everything after an invalid entry.
        ends = (i for i, entry in enumerate(entries) if entry in ("", "-1"))
        return entries[: next(ends, len(entries))]
    try:
        names = os.listdir(devices_directory)
    except OSError:
        return []  # Not Linux, or not readable.
    count = sum(re.fullmatch(r"nvidia\d+", name) is not None for name in names)
    # Windows' Linux shows its GPUs as one device; more than one needs CUDA_VISIBLE_DEVICES.
    found = 1 if count == 0 and "dxg" in names else count
    return [str(number) for number in range(found)]


def gpu_order(env: Mapping[str, str]) -> Literal["PCI_BUS_ID"] | None:
    """nvidia-smi's order if the numbers are ours; None if the environment already decides."""
    ours = "CUDA_VISIBLE_DEVICES" not in env and "CUDA_DEVICE_ORDER" not in env
    return "PCI_BUS_ID" if ours else None
