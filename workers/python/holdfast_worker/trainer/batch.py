"""From a recorded batch to micro-batches. Pure functions of batch, cut and world size."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypedDict, cast

import msgpack
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from holdfast_worker.operation import BadDataError
from holdfast_worker.prompts import encode_rows, encode_supervised
from holdfast_worker.wire.received import decode, plain
from holdfast_worker.wire.types import (
    ArtifactRef,
    Batch,
    PreferenceBatch,
    PreferencePair,
    Row,
    SequenceColumn,
    SupervisedBatch,
    TrajectoryBatch,
    UnpairedBatch,
    UnpairedCompletion,
)

ReadArtifact = Callable[[ArtifactRef], bytes]


class StoredTrajectory(TypedDict):
    """Of a slab (`data/trajectory.ts`), what training reads: little-endian numbers."""

    tokens: bytes  # [T] int32
    action_mask: bytes  # [T] uint8
    behaviour_logp: bytes  # [T] float32


class StoredGroup(TypedDict):
    draw: int
    trajectories: list[StoredTrajectory]


class StoredSlab(TypedDict):
    """`sampling`: settings that had their first value when they were introduced are left out."""

    version: str
    sampling: dict[str, Any]
    groups: list[StoredGroup]


class StoredColumn(TypedDict):
    """One number per token, of each sequence: [T] float32, little-endian."""

    values: list[bytes]


@dataclass
class SequenceData:
    """One training sequence. T tokens; position t belongs to the target."""

    tokens: NDArray[Any]  # [T] int32
    mask: NDArray[np.bool_]  # [T], 1 on trained tokens
    group: int  # index of its group (or row) in the batch
    token_columns: dict[str, NDArray[Any]] = field(  # [T] float32
        default_factory=dict[str, NDArray[Any]]
    )
    sequence_columns: dict[str, float] = field(default_factory=dict[str, float])
    # The version whose log-probabilities at the batch's temperature are `behaviour_logp`; None:
    # the distribution was cut or penalised, or there is none.
    sampled_by: str | None = None


@dataclass
class Update:
    """What one optimizer step holds: places of sequences in the batch, in batch order."""

    sequences: list[int]


def read_batch(data: bytes) -> Batch:
    """A batch as the engine recorded it."""
    return decode(cast("type[Batch]", Batch), json.loads(data), called="a batch")


def read_sequences(batch: Batch, read: ReadArtifact, tokenizer: Any) -> list[SequenceData]:
    """All sequences of a batch in its order: groups in order, samples in order."""
    if isinstance(batch, TrajectoryBatch):
        return _trajectory_sequences(batch, read)
    if isinstance(batch, SupervisedBatch):
        return _supervised_sequences(batch, tokenizer)
    if isinstance(batch, UnpairedBatch):
        return _unpaired_sequences(batch, read, tokenizer)
    return _pair_sequences(batch, read, tokenizer)


def tokens_digest(sequences: Sequence[SequenceData]) -> str:
    """sha256 of all tokens with their masks, sequence by sequence."""
    digest = hashlib.sha256()
    for sequence in sequences:
        digest.update(len(sequence.tokens).to_bytes(4, "little"))
        digest.update(np.ascontiguousarray(sequence.tokens, "<i4").tobytes())
        digest.update(np.ascontiguousarray(sequence.mask, "u1").tobytes())
    return digest.hexdigest()


def _supervised_sequences(batch: SupervisedBatch, tokenizer: Any) -> list[SequenceData]:
    sequences: list[SequenceData] = []
    for place, row in enumerate(batch.rows):
        if row.completion is UNSET:
            raise BadDataError(f"Cannot train on row '{row.row_id}' because it has no completion")
        with _row_named(row):
            encoded = encode_rows(
                tokenizer,
                plain(row.prompt),
                plain(row.completion),
                plain(batch.chat),
                tools=plain(row.tools),
            )
        sequences.extend(
            SequenceData(np.asarray(tokens, np.int32), _mask(mask), place)
            for tokens, mask in encoded
        )
    return sequences


@contextmanager
def _row_named(row: Row | PreferencePair | UnpairedCompletion) -> Generator[None]:
    """What cannot be encoded says of which row."""
    try:
        yield
    except BadDataError as error:
        raise BadDataError(f"Cannot train on row '{row.row_id}': {error}") from error


def _pair_sequences(
    batch: PreferenceBatch, read: ReadArtifact, tokenizer: Any
) -> list[SequenceData]:
    """
    Chosen, rejected, chosen, ...; a pair is a group. Both sides of a pair have the same prompt
    tokens.
    """
    sequences: list[SequenceData] = []
    for place, pair in enumerate(batch.pairs):
        for side, completion in (("chosen", pair.chosen), ("rejected", pair.rejected)):
            tokens, mask = _answered(tokenizer, pair, completion, batch.chat, called=f"{side} side")
            sequence = SequenceData(tokens, mask, place)
            sequence.sequence_columns["margin"] = float(pair.margin)
            sequences.append(sequence)
    _add_columns(batch, sequences, read)
    return sequences


def _answered(
    tokenizer: Any,
    row: PreferencePair | UnpairedCompletion,
    completion: Any,
    chat: Any,
    *,
    called: str,
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Tokens and mask of a row's prompt with one completion, which is never cut."""
    with _row_named(row):
        tokens, mask = encode_supervised(
            tokenizer,
            plain(row.prompt),
            plain(completion),
            plain(chat),
            tools=plain(row.tools),
        )
    if len(tokens) > tokenizer.model_max_length:
        raise BadDataError(
            f"Cannot train on row '{row.row_id}' "
            f"because its {called} has {len(tokens)} tokens, prompt and "
            f"all: the model has room for {tokenizer.model_max_length}, and half an answer is no preference. "
            "Shorten the row or remove it"
        )
    return np.asarray(tokens, np.int32), _mask(mask)


def _unpaired_sequences(
    batch: UnpairedBatch, read: ReadArtifact, tokenizer: Any
) -> list[SequenceData]:
    """
    Every completion; where the batch has mismatched ones, each is followed by that of a different
    prompt behind the same prompt, with the label 0. Both are one group.
    """
    encoded = [
        _answered(tokenizer, one, one.completion, batch.chat, called="completion")
        for one in batch.completions
    ]
    sequences: list[SequenceData] = []
    for place, (tokens, mask) in enumerate(encoded):
        sequence = SequenceData(tokens, mask, place)
        sequence.sequence_columns["label"] = 1.0 if batch.completions[place].label else -1.0
        sequences.append(sequence)
        if batch.mismatched is UNSET:
            continue
        other, other_mask = encoded[batch.mismatched[place]]
        prompt, begin = int(mask.argmax()), int(other_mask.argmax())
        room = tokenizer.model_max_length
        mismatched = SequenceData(
            # Only the KL is estimated with it: it may lose its end where it is too long.
            np.concatenate([tokens[:prompt], other[begin:]])[:room],
            np.concatenate([mask[:prompt], other_mask[begin:]])[:room],
            place,
        )
        mismatched.sequence_columns["label"] = 0.0
        sequences.append(mismatched)
    _add_columns(batch, sequences, read)
    return sequences


def _trajectory_sequences(batch: TrajectoryBatch, read: ReadArtifact) -> list[SequenceData]:
    slabs: dict[str, StoredSlab] = {}
    sequences: list[SequenceData] = []
    for place, ref in enumerate(batch.groups):
        key = ref.slab.sha256
        if key not in slabs:
            slab = msgpack.unpackb(read(ref.slab), strict_map_key=False)
            slabs[key] = cast("StoredSlab", slab)
        group = slabs[key]["groups"][ref.index]
        if group["draw"] != ref.draw:
            raise BadDataError(
                f"Cannot train on group {place} because slab {key} holds draw {group['draw']} at {ref.index}: "
                f"the batch names draw {ref.draw}"
            )
        sampled_by = _sampled_by(slabs[key], batch.temperature)
        sequences.extend(
            _from_trajectory(group["trajectories"][sample], place, sampled_by)
            for sample in ref.samples
        )
    _add_columns(batch, sequences, read)
    return sequences


def _mask(values: Any) -> NDArray[np.bool_]:
    """The first token has no log-probability, so it is never trained."""
    mask = np.asarray(values).astype(bool)
    mask[:1] = False
    return mask


def _sampled_by(slab: StoredSlab, temperature: float) -> str | None:
    whole = {"top_p": 1, "min_p": 0, "repetition_penalty": 1, "temperature": temperature}
    sampling = slab["sampling"]
    is_whole = all(sampling.get(name, value) == value for name, value in whole.items())
    return slab["version"] if is_whole and sampling.get("top_k", -1) <= 0 else None


def _from_trajectory(
    trajectory: StoredTrajectory, group: int, sampled_by: str | None
) -> SequenceData:
    tokens = np.frombuffer(trajectory["tokens"], "<i4")
    mask = _mask(np.frombuffer(trajectory["action_mask"], np.uint8))
    behaviour = np.frombuffer(trajectory["behaviour_logp"], "<f4")
    if not len(tokens) == len(mask) == len(behaviour):
        raise BadDataError(
            f"Cannot train on a trajectory of group {group} because its lengths differ: {len(tokens)} tokens, "
            f"{len(mask)} mask, {len(behaviour)} behaviour_logp"
        )
    return SequenceData(tokens, mask, group, {"behaviour_logp": behaviour}, sampled_by=sampled_by)


def _add_columns(
    batch: TrajectoryBatch | PreferenceBatch | UnpairedBatch,
    sequences: list[SequenceData],
    read: ReadArtifact,
) -> None:
    for name, column in batch.columns.items():
        if isinstance(column, SequenceColumn):
            values: Sequence[float | NDArray[Any]] = column.values
        else:
            stored = cast("StoredColumn", msgpack.unpackb(read(column.artifact)))
            values = [np.frombuffer(blob, "<f4") for blob in stored["values"]]
        _check_count(name, len(values), len(sequences))
        for sequence, value in zip(sequences, values):
            sequence.token_columns[name] = _spread(name, value, len(sequence.tokens))
    recorded = batch.staleness if isinstance(batch, TrajectoryBatch) else []
    staleness = recorded or [0] * len(sequences)
    _check_count("staleness", len(staleness), len(sequences))
    for sequence, value in zip(sequences, staleness):
        sequence.sequence_columns["staleness"] = float(value)


def _check_count(name: str, found: int, expected: int) -> None:
    if found != expected:
        raise BadDataError(
            f"Cannot read column '{name}' because it has {found} values: the batch has {expected} sequences"
        )


def _spread(name: str, value: float | NDArray[Any], length: int) -> NDArray[Any]:
    """[T] float32: one number broadcasts over the sequence."""
    if not isinstance(value, np.ndarray):
        with np.errstate(over="ignore"):  # What does not fit is infinite, and the step names it.
            return np.full(length, value, np.float32)
    if len(value) != length:
        raise BadDataError(
            f"Cannot read column '{name}' as a sequence of {length} tokens has {len(value)} values"
        )
    return value


def updates_of(batch: Batch, sequences: list[SequenceData]) -> list[Update]:
    """
    The batch's optimizer steps. Each lists its sequences in batch order, whatever order its groups
    are named in, without those that are masked: no forward is spent on them.
    """
    masked = set(batch.masked or ()) if isinstance(batch, TrajectoryBatch) else set[int]()
    members: dict[int, list[int]] = {}
    for place, sequence in enumerate(sequences):
        if place not in masked:
            members.setdefault(sequence.group, []).append(place)
    updates: list[Update] = []
    for groups in batch.updates:
        places = [place for group in sorted(set(groups)) for place in members.get(group, [])]
        if not places:
            raise BadDataError(
                f"Cannot take an optimizer step because its groups hold no sequence to train: {groups[:8]}"
            )
        updates.append(Update(places))
    return updates


def cut(lengths: Sequence[int], *, tokens_max: int, world_size: int) -> list[list[list[int]]]:
    """
    Micro-batches of every rank [world][m][rows], as places in `lengths`: equally many on each rank,
    a filler is []. Whole sequences, sorted by length (ties by place), are taken greedily while rows
    * longest <= tokens_max; a longer sequence stands alone. Micro-batch i goes to rank i %
    world_size, so that ranks get similar lengths. The limit is lowered where it would leave a rank
    without work.
    """
    order = sorted(range(len(lengths)), key=lambda place: (lengths[place], place))
    limit = limit_of(sum(lengths), tokens_max, world_size)
    pieces: list[list[int]] = []
    for place in order:
        if pieces and (len(pieces[-1]) + 1) * lengths[place] <= limit:
            pieces[-1].append(place)
        else:
            pieces.append([place])
    return dealt(pieces, world_size)


def limit_of(tokens: int, tokens_max: int, world_size: int) -> int:
    """What a micro-batch may hold so that every rank has one, of so many tokens in all."""
    return tokens_max if world_size == 1 else min(tokens_max, max(-(-tokens // world_size), 1))


def dealt(pieces: list[list[Any]], world_size: int) -> list[list[list[Any]]]:
    """Pieces by rank, one after another to each, with fillers where the last ranks got one less."""
    rounds = -(-len(pieces) // world_size)
    pieces = pieces + [[]] * (rounds * world_size - len(pieces))
    return [pieces[rank::world_size] for rank in range(world_size)]


def cut_pairs(lengths: Sequence[int], *, tokens_max: int, world_size: int) -> list[list[list[int]]]:
    """
    `cut` for sequences that stand in pairs: 2p and 2p + 1 stay together, each as long as the longer
    one.
    """
    longer = [max(both) for both in zip(lengths[::2], lengths[1::2], strict=True)]
    ranks = cut(longer, tokens_max=tokens_max // 2, world_size=world_size)
    return [
        [[place for pair in piece for place in (2 * pair, 2 * pair + 1)] for piece in rank]
        for rank in ranks
    ]
