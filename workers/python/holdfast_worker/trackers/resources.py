"""What the machine does: CPU, memory, disk and GPUs, as metrics."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from typing import Any

GIB = 2**30
GPU_FIELDS = ("utilization.gpu", "memory.used", "power.draw")
GPU_LIMIT_S = 5


class Resources:
    """Of this machine; disk: of `home`. Best effort: what cannot be read has no metric."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._psutil = module("psutil")
        self._nvidia = shutil.which("nvidia-smi")
        if self._psutil is not None:
            self._psutil.cpu_percent()  # The next one is since this one.

    def now(self) -> dict[str, float]:
        return {**self._machine(), **self._disk(), **self._gpus()}

    def _machine(self) -> dict[str, float]:
        if self._psutil is None:
            return {}
        return {
            "system/cpu_percent": float(self._psutil.cpu_percent()),
            "system/memory_used_gib": self._psutil.virtual_memory().used / GIB,
        }

    def _disk(self) -> dict[str, float]:
        try:
            return {"system/disk_free_gib": shutil.disk_usage(self._home).free / GIB}
        except OSError:
            return {}

    def _gpus(self) -> dict[str, float]:
        if self._nvidia is None:
            return {}
        fields = f"--query-gpu={','.join(GPU_FIELDS)}"
        query = [self._nvidia, fields, "--format=csv,noheader,nounits"]
        try:
            query_process = subprocess.run(
                query, capture_output=True, text=True, timeout=GPU_LIMIT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return {}
        return gpu_metrics(query_process.stdout) if query_process.returncode == 0 else {}


def gpu_metrics(text: str) -> dict[str, float]:
    """Of nvidia-smi's table: percent, MiB, W. A field that a GPU lacks is no number."""
    metrics: dict[str, float] = {}
    for gpu, line in enumerate(text.strip().splitlines()):
        for name, scale, field in zip(
            ("percent", "memory_used_gib", "power_w"), (1, 1 / 1024, 1), line.split(",")
        ):
            try:
                metrics[f"system/gpu_{gpu}_{name}"] = float(field) * scale
            except ValueError:
                continue
    return metrics


def module(name: str) -> Any:
    """An optional module; None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
