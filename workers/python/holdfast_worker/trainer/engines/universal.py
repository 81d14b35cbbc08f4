"""
Makes a DeepSpeed checkpoint of one number of ranks loadable by a different number, in DeepSpeed's
universal format.

The conversion only splits and joins: float32 weights and both moments keep their bits. Later steps
do not, because a different number of ranks adds gradients in a different order.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast_worker.removal import remove_tree

TWIN = r"\.universal\..+"
# Tag of the only checkpoint in a state directory. `latest` is not written: DeepSpeed writes it
# without fsync.
TAG = "step"


@contextmanager
def universal(state: Path, *, engine: Any, home: str) -> Generator[Path]:
    """
    The universal twin of the state directory `state`, on every rank: rank 0 writes it next to the
    checkpoint and removes it when all ranks have read it. After a crash the directory belongs to no
    checkpoint, and the next save removes it.
    """
    checkpoint = state.parent
    twin = checkpoint.with_name(f".universal.{checkpoint.name}")
    if engine.rank == 0:
        remove_tree(twin, home=home, named=TWIN)
        _convert(state / TAG, twin / TAG)
    engine.gather(None)  # No rank reads before it exists.
    yield twin
    engine.gather(None)  # All have read it.
    if engine.rank == 0:
        remove_tree(twin, home=home, named=TWIN)


def _convert(source: Path, target: Path) -> None:
    """
    What `ds_to_universal.py` does, in this process: a rank must not fork, and its files are
    verified already.
    """
    from deepspeed.checkpoint import ds_to_universal

    arguments = Namespace(
        input_folder=str(source),
        output_folder=str(target),
        num_extract_workers=1,
        num_merge_workers=1,
        keep_temp_folder=False,
        strict=True,
        inject_missing_state=True,  # ZeRO 1 and 2 write no `universal_checkpoint_info`.
    )
    ds_to_universal.main(arguments)


def undo_sharing(optimizer: Any, *, decays: list[float]) -> None:
    """
    ZeRO-3 (0.19.8, stage3.py, `load_hp_checkpoint_state_from_checkpoint_dir_stage3`) gives every
    group of parameters the first group's settings and the same step tensor: each group would raise
    it for all, and Adam's bias correction would run ahead. `decays`: the weight decay of each
    group.
    """
    for group, decay in zip(optimizer.param_groups, decays):
        group["weight_decay"] = decay
    for state in optimizer.state.values():
        if hasattr(state.get("step"), "clone"):
            state["step"] = state["step"].clone()
