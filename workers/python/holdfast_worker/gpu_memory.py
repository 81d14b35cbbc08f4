"""
GPU memory between operations: memory that a process caches is not available to the others on the
same GPU.
"""

from __future__ import annotations

import gc
import os
from typing import Any

SHARING_VARIABLE = "HOLDFAST_GPU_SHARING"  # Processes of this run on this GPU, with this one.


def sharing() -> int:
    """How many processes of the run share this process's GPU, at least 1."""
    return max(int(os.environ.get(SHARING_VARIABLE) or 1), 1)


def drop_garbage(device: str) -> None:
    """
    Frees what only reference cycles keep alive (DeepSpeed's engine, an error's frames) and releases
    the GPU's cached memory.
    """
    gc.collect()
    if device != "cpu":
        _torch().cuda.empty_cache()


def give_back(device: str) -> None:
    """
    After an operation: releases cached memory if another process of the run needs this GPU next.
    """
    if device != "cpu" and sharing() > 1:
        _torch().cuda.empty_cache()


def _torch() -> Any:
    import torch

    return torch
