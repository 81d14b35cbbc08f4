"""
A disk without room for a checkpoint or a publication: refused before the first byte, told with its
path.
"""

from __future__ import annotations

import errno
import os
from collections import namedtuple
from pathlib import Path

import pytest
import torch

from holdfast_worker.operation import DiskFullError
from holdfast_worker.rank.failures import cause_of
from holdfast_worker.trainer import disk_room
from trainer_harness import Trainer, trajectory_batch

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def trainer(tmp_path):
    return trained(tmp_path)


def trained(directory, **spec):
    """A trainer that has taken one step, so that its optimizer has a state."""
    trainer = Trainer(directory, **spec)
    trainer.create()
    trainer.load()
    trainer.train(trajectory_batch(trainer.artifacts, [[16, 9], [12, 7]]), between=("v0", "v1"))
    return trainer


def with_free(monkeypatch, free):
    monkeypatch.setattr(
        disk_room.shutil, "disk_usage", lambda place: Usage(10**12, 10**12 - free, free)
    )


def written(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize("op", ["save", "publish"])
def test_what_does_not_fit_is_refused_before_a_byte_is_written_and_the_version_stays(
    trainer, monkeypatch, op
):
    target = trainer.directory / "out" / "000001-0123456789ab-1-1"
    writes = []
    with monkeypatch.context() as patch:
        with_free(patch, 1000)
        patch.setattr(
            "holdfast_worker.trainer.model.model_source.ModelSource.write",
            lambda *_, **__: writes.append(1),
        )
        with pytest.raises(
            DiskFullError, match=rf"'{target}'.* \d+ bytes are needed.* 1000 are free"
        ) as refused:
            trainer.call(op, version="v1", dir=str(target))
    assert cause_of(refused.value) == "disk_full"
    assert "checkpoints.keep_last" in str(refused.value) and "--home" in str(refused.value)
    assert (writes, list(target.parent.iterdir())) == ([], [])
    assert trainer.call(op, version="v1", dir=str(target))["version"] == "v1"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("op", ["save", "publish"])
def test_the_estimate_is_a_little_more_than_what_is_written(tmp_path, monkeypatch, op, dtype):
    trainer = trained(tmp_path, dtype=dtype)
    places = []
    monkeypatch.setattr(disk_room, "free_bytes", lambda place: places.append(place) or 10**12)
    estimates = []
    require = disk_room.require_room
    monkeypatch.setattr(
        disk_room,
        "require_room",
        lambda engine, place, rank_bytes: (
            estimates.append(rank_bytes) or require(engine, place, rank_bytes)
        ),
    )
    trainer.call(op, version="v1", dir=str(tmp_path / "out"))
    size = written(tmp_path / "out")
    assert size <= estimates[0] <= size + 2 * disk_room.BESIDE_TENSORS_BYTES
    assert len(places) == 1


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
        RuntimeError("basic_ios::clear: iostream error"),
    ],
    ids=["no space", "quota", "torch"],
)
def test_a_disk_that_runs_full_in_the_middle_leaves_no_partial_checkpoint(
    trainer, monkeypatch, error
):
    def full(value, path):
        Path(path).write_bytes(b"partial")
        raise error

    target = trainer.directory / "checkpoints" / "000001-0123456789ab-1-1"
    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", full)
        with pytest.raises(
            DiskFullError, match=rf"Cannot write '{target}' because its disk is full"
        ):
            trainer.call("save", version="v1", dir=str(target))
    assert list(target.parent.iterdir()) == []
    assert trainer.call("save", version="v1", dir=str(target))["files"]


def test_another_error_of_a_save_is_told_as_it_is(trainer, monkeypatch):
    def broken(value, path):
        raise RuntimeError("boom")

    monkeypatch.setattr(torch, "save", broken)
    with pytest.raises(RuntimeError, match="boom"):
        trainer.call("save", version="v1", dir=str(trainer.directory / "out"))


def test_all_ranks_refuse_if_their_parts_together_do_not_fit(tmp_path, monkeypatch):
    class TwoRanks:
        def gather(self, value):
            return [(700, 1000), value]

    with_free(monkeypatch, 5000)  # Rank 0's word counts: all decide by the same numbers.
    disk_room.require_room(TwoRanks(), tmp_path, 300)
    with pytest.raises(DiskFullError, match="1001 bytes are needed.* 1000 are free"):
        disk_room.require_room(TwoRanks(), tmp_path, 301)


def test_free_bytes_of_a_directory_that_is_not_there_yet_are_those_of_the_one_that_is(tmp_path):
    assert disk_room.free_bytes(tmp_path / "a" / "b") > 0
