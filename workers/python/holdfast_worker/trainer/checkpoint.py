"""
A checkpoint: DIR/hf, a plain Hugging Face directory; DIR/ema, another of the weights' moving average
if there is one; and DIR/state, what training needs to continue bit for bit.

Nothing here decides that a checkpoint exists. Every rank answers with the hashes of the files it
wrote, and the engine commits their union in its journal: readers see a complete checkpoint or none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from holdfast_worker import private_files, weights
from holdfast_worker.json_value import JsonValue
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer import disk_room, moving_average
from holdfast_worker.trainer.engines.engine import TrainingEngine
from holdfast_worker.trainer.engines.loss_scale import LossScaleState
from holdfast_worker.trainer.moving_average import MovingAverage
from holdfast_worker.weights import Tensors
from holdfast_worker.wire import types
from holdfast_worker.wire.answers import Checkpoint, Numerics, Publication

STATE_RECORD = "trainer.json"
UNFINISHED = r"\..+\.tmp"  # A publication that is being written.
# As the engine names them: `nameOf` in flows/stages/checkpoint_policy.ts.
CHECKPOINT = r"\d{6,}-[0-9a-f]{12}-[0-9a-z-]+"
MUST_MATCH = ("engine", "zero", "dtype", "lora")  # A different number of ranks is converted.


class StateRecord(TypedDict):
    """What a checkpoint says about itself, besides the bytes from which training continues."""

    version: str
    steps_done: int
    optimizer: Mapping[str, JsonValue]
    numerics: Numerics
    skipped: NotRequired[int]  # Consecutive steps up to now; absent: none.
    loss_scale: NotRequired[LossScaleState]  # Of float16.


def write_hf(
    engine: TrainingEngine,
    source: Any,
    *,
    directory: Path,
    dtype: str,
    form: str = "merged",
    average: Tensors | None = None,
) -> str | None:
    """
    All ranks gather the weights; rank 0 writes them. `form`: if an adapter is trained, merged into
    one model or only the adapter. `average`: written in place of the trained weights. Returns the
    digest of a model with an adapter, which is the same for both forms.
    """
    adapter = source.adapter
    alone = adapter is not None and form == "adapter"
    tensors = engine.full_weights(adapter.names(engine.module) if alone else None)
    if engine.rank != 0:
        return None
    tensors = moving_average.in_place_of(tensors, average or {})
    adapter_tensors = None if adapter is None else adapter.tensors(tensors)
    if alone:
        adapter.write(directory, adapted=engine.module, tensors=adapter_tensors, files=source.files)
    else:
        model = engine.module if adapter is None else engine.module.get_base_model()
        whole = tensors if adapter is None else adapter.merged(engine.module, tensors, dtype)
        source.write(directory, model=model, tensors=whole, dtype=dtype)
    private_files.open_as_usual(directory)
    return None if adapter is None else adapter.digest(adapter_tensors)


def publish(
    engine: TrainingEngine,
    source: Any,
    *,
    target: Path,
    home: str,
    dtype: str,
    version: str,
    form: str = "merged",
    average: MovingAverage | None = None,
) -> Publication:
    """
    Writes the weights, or their moving average, to `target`, which is complete or absent. Returns
    the same on every rank.
    """
    temporary = target.with_name(f".{target.name}.tmp")
    with disk_room.leaving_nothing_behind(temporary, home=home, named=UNFINISHED):
        if engine.rank == 0:
            weights.clear_directory(temporary, home=home, named=UNFINISHED)
        disk_room.require_room(engine, target, disk_room.weights_bytes(engine, source, form))
        of_adapter = write_hf(
            engine,
            source,
            directory=temporary,
            dtype=dtype,
            form=form,
            average=average and average.whole(),
        )
        publication: Publication | None = None
        if engine.rank == 0:
            with ThreadPoolExecutor(1) as beside:  # Hashing holds no lock of the interpreter.
                files = beside.submit(weights.files_of_directory, temporary)
                tensors, digest = weights.manifest_of_directory(temporary)
            publication = {
                "version": version,
                "dir": str(target),
                "digest": of_adapter or digest,
                "tensors": tensors,
                "files": files.result(),
            }
            if source.adapter is not None and form == "adapter":
                publication["base"] = {
                    "dir": str(source.adapter.base),
                    "digest": source.adapter.base_digest,
                }
            weights.replace_directory(temporary, target, home=home)
    return engine.gather(publication)[0]


def save(
    engine: TrainingEngine,
    source: Any,
    *,
    directory: Path,
    home: str,
    record: StateRecord,
    average: MovingAverage | None = None,
) -> Checkpoint:
    """
    Writes DIR/hf, DIR/state and, with an `average`, DIR/ema. Returns the files that this rank
    wrote, durable.
    """
    with disk_room.leaving_nothing_behind(directory, home=home, named=CHECKPOINT):
        if engine.rank == 0:  # Removes what an uncommitted attempt left.
            weights.clear_directory(directory, home=home, named=CHECKPOINT)
        return _save(engine, source, directory=directory, record=record, average=average)


def _save(
    engine: TrainingEngine,
    source: Any,
    *,
    directory: Path,
    record: StateRecord,
    average: MovingAverage | None,
) -> Checkpoint:
    import torch

    from holdfast_worker.rng_state import rng_state

    state = directory / "state"
    if engine.rank == 0:
        state.mkdir()
    form = "merged" if source.adapter is None else "adapter"
    weights_bytes = disk_room.weights_bytes(engine, source, form)
    rank_bytes = weights_bytes + engine.state_bytes() + disk_room.BESIDE_TENSORS_BYTES
    if average is not None and engine.rank == 0:
        rank_bytes += weights_bytes + average.bytes()
    disk_room.require_room(
        engine, directory, rank_bytes
    )  # No rank writes before the directory exists.
    dtype = record["numerics"]["dtype"]
    write_hf(engine, source, directory=directory / "hf", dtype=dtype, form=form)
    if average is not None:
        whole = average.whole()
        write_hf(engine, source, directory=directory / "ema", dtype=dtype, form=form, average=whole)
        if engine.rank == 0:
            moving_average.save(whole, state)
    engine.save_state(state)
    torch.save(rng_state(), state / f"rng_rank_{engine.rank}_.pt")
    if engine.rank == 0:
        (state / STATE_RECORD).write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")
    engine.gather(None)  # All files of all ranks are written.
    mine = [path for path in weights.list_files(directory) if writer_of(path) == engine.rank]
    for path in mine:
        weights.fsync_path(path)
    if engine.rank == 0:
        for path in (directory, *directory.rglob("*")):
            if path.is_dir():
                weights.fsync_path(path)
        weights.fsync_path(directory.parent)
    digest = weights.digest_of_directory(directory / "hf") if engine.rank == 0 else ""
    return {
        "version": record["version"],
        "dir": str(directory),
        "world_size": engine.world_size,
        "digest": engine.gather(digest)[0],
        "files": [weights.file_entry(directory, path) for path in mine],
    }


def writer_of(path: Path) -> int:
    """
    The rank that wrote a file of a checkpoint. DeepSpeed names shards
    `[bf16_]zero_pp_rank_3_mp_rank_00_...pt`, we name ours `rng_rank_3_.pt`; everything else is rank
    0's.
    """
    found = re.match(r"(?:.*_)?(?:zero_pp|rng)_rank_(\d+)_", path.name)
    return int(found[1]) if found else 0


def verify(engine: TrainingEngine, checkpoint: types.Checkpoint) -> None:
    """
    Checks every file's hash before anything is read: DeepSpeed and torch silently load a flipped
    bit. Ranks divide the files among them, and all raise if one finds a bad file.
    """
    complaint = None
    try:
        weights.verify_files(checkpoint.dir, checkpoint.files[engine.rank :: engine.world_size])
    except BadDataError as error:
        complaint = str(error)
    complaints = [text for text in engine.gather(complaint) if text is not None]
    if complaints:
        raise BadDataError(complaints[0])


def read_record(directory: Path, expected: Numerics) -> StateRecord:
    """The saved record, after checking that this trainer can continue from it."""
    record: StateRecord = json.loads((directory / "state" / STATE_RECORD).read_text())
    saved = record["numerics"]
    keys = [key for key in MUST_MATCH if saved.get(key) != expected.get(key)]
    differs = [f"{key} is {expected.get(key)}, saved {saved.get(key)}" for key in keys]
    if differs:
        raise BadDataError(
            f"Cannot load checkpoint '{directory}' because the trainer differs: "
            f"{'; '.join(differs)}. "
            "Start from its hf/ directory as a model, or use the trainer that saved it"
        )
    return record


def restore_rng(engine: TrainingEngine, directory: Path, *, world_size: int) -> None:
    """
    Restores this rank's random generators; ranks beyond the `world_size` that saved use those of an
    older rank. (DeepSpeed keeps only rank 0's on ZeRO 0 to 2.)
    """
    import torch

    from holdfast_worker.rng_state import restore_rng_state

    path = directory / "state" / f"rng_rank_{engine.rank % world_size}_.pt"
    restore_rng_state(torch.load(path, map_location="cpu", weights_only=True))
