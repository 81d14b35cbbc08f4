"""Training and scoring of one rank, over any engine: read, cut, run, answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgpack
import torch

from holdfast_worker.loss import LossProgram, count_step, run_step
from holdfast_worker.operation import BadDataError, OperationIO
from holdfast_worker.trainer.batch import SequenceData, Update, cut, read_sequences, updates_of
from holdfast_worker.trainer.engine import NonFiniteError, TrainingEngine
from holdfast_worker.trainer.forward import policy_forward
from holdfast_worker.trainer.micro_batches import check_columns, micro_batch
from holdfast_worker.trainer.model_source import ModelSource


@dataclass
class Work:
    """A batch, read and checked before anything is changed."""

    program: LossProgram
    sequences: list[SequenceData]
    updates: list[Update]
    columns: set[str]
    temperature: float
    coef: dict[str, float]
    tokens_max: int


class TrainingOperations:
    """What needs torch. `references`: frozen models by path, opened once."""

    non_finite = NonFiniteError

    def __init__(self, engine: TrainingEngine) -> None:
        self.engine = engine
        self.programs: dict[tuple[str, bool], LossProgram] = {}
        self.references: dict[str, Any] = {}
        self.cut: dict[str, int] = {}  # Of the micro-batches that run now, or ran last.

    def _cut(self, lengths: list[int], tokens_max: int) -> list[list[list[int]]]:
        """`cut`, remembered for an engine that has to make it smaller. Tokens with padding."""
        pieces = cut(lengths, tokens_max=tokens_max, world_size=self.engine.world_size)
        largest = max(len(rows) * max(lengths[row] for row in rows) for rank in pieces for rows in rank if rows)
        self.cut = {"longest_tokens": max(lengths), "micro_batch_tokens": largest}
        return pieces

    def prepare(self, args: dict[str, Any], io: OperationIO, source: ModelSource) -> Work:
        """Reads everything a `train` needs. Raises before the first step, never between two."""
        batch = json.loads(io.read_artifact(args["batch"]))
        # Without old_logp, one step of the version that sampled reads logp.detach() in its place.
        is_current = len(batch["updates"]) == 1 and "old_logp" not in batch.get("columns", {})
        program = self._program(args["loss"], io, is_current)
        sequences = read_sequences(batch, io.read_artifact, source.tokenizer if batch["kind"] == "supervised" else None)
        updates = updates_of(batch, sequences)
        columns = check_columns(program.columns, sequences)
        return Work(
            program, sequences, updates, columns, batch["temperature"], batch["coef"], args["micro_batch_tokens_max"]
        )

    def _program(self, ref: dict[str, Any], io: OperationIO, is_current: bool) -> LossProgram:
        key = (ref["sha256"], is_current)
        if key not in self.programs:
            self.programs = {key: LossProgram(json.loads(io.read_artifact(ref)), old_is_current=is_current)}
        return self.programs[key]

    def step(self, work: Work, update: Update, *, lr: float, io: OperationIO) -> dict[str, Any]:
        """One optimizer step: the StepRecord, or NonFiniteError without a step."""
        engine = self.engine
        sequences = [work.sequences[place] for place in update.sequences]
        lengths = [len(sequence.tokens) for sequence in sequences]
        pieces = self._cut(lengths, work.tokens_max)
        counts = count_step([sequence.mask for sequence in sequences], [sequence.group for sequence in sequences])
        mine = pieces[engine.rank]
        done = 0

        def backward(loss: torch.Tensor, boundary: bool) -> None:
            nonlocal done
            io.happened("micro_batch")  # In the middle of a step: gradients are half gathered, and the others wait.
            engine.backward(loss, boundary)
            done += 1
            io.progress("micro_batch", done, len(mine))

        first = update is work.updates[0]  # Only it still has the parameters that old_logp was computed with.
        outcome = run_step(
            work.program,
            [micro_batch(sequences, rows, columns=work.columns, device=engine.device) for rows in mine],
            counts=counts,
            forward=lambda rows, need: policy_forward(engine.model, rows, need=need, temperature=work.temperature),
            backward=backward,
            gather=engine.gather,
            world_size=engine.world_size,
            coef=work.coef,
            logp_current="old_logp" if first and "old_logp" in work.columns else None,
        )
        if not outcome.finite:
            raise NonFiniteError(f"Cannot step as the loss is not finite: first at {describe_culprit(outcome.culprit)}")
        grad_norm = engine.step(lr)
        return {
            "loss": outcome.loss,
            "grad_norm": grad_norm,
            "lr": lr,
            "n_tokens": counts.n_tokens,
            "n_sequences": counts.n_sequences,
            "micro_batches": sum(1 for rank in pieces for rows in rank if rows),
            "metrics": outcome.metrics,
        }

    def score(self, column: str, args: dict[str, Any], io: OperationIO, *, source: ModelSource, dtype: str) -> bytes:
        """One column: MessagePack {values: [bin float32 [T] per sequence]}, the same on every rank."""
        io.check_cancelled()  # Not later: a rank that left would let the others wait in the next gather.
        batch = json.loads(io.read_artifact(args["batch"]))
        sequences = read_sequences(batch, io.read_artifact, source.tokenizer if batch["kind"] == "supervised" else None)
        model = self.engine.model if column == "old_logp" else self._reference(args["reference_path"], dtype)
        lengths = [len(sequence.tokens) for sequence in sequences]
        pieces = self._cut(lengths, args["micro_batch_tokens_max"])
        mine: dict[int, bytes] = {}
        for done, rows in enumerate(pieces[self.engine.rank]):
            mine.update(self._score_rows(model, sequences, rows, batch["temperature"]))
            io.progress(column, done + 1, len(pieces[self.engine.rank]))
        values = {place: value for part in self.engine.gather(mine) for place, value in part.items()}
        return msgpack.packb({"values": [values[place] for place in range(len(sequences))]})

    @torch.no_grad()
    def _score_rows(
        self, model: Any, sequences: list[SequenceData], rows: list[int], temperature: float
    ) -> dict[int, bytes]:
        part = micro_batch(sequences, rows, columns=set(), device=self.engine.device)
        logp = policy_forward(model, part, need={"logp"}, temperature=temperature)["logp"]
        masked = torch.where(part.mask, logp, 0.0).cpu().numpy()
        return {
            place: masked[row, : len(sequences[place].tokens)].astype("<f4").tobytes() for row, place in enumerate(rows)
        }

    def _reference(self, path: str | None, dtype: str) -> Any:
        if path is None:
            raise BadDataError("Cannot score ref_logp as reference_path is null: name the reference model's directory")
        if path not in self.references:
            model = ModelSource(path).open_model(dtype).to(self.engine.device).eval()
            self.references = {path: model.requires_grad_(False)}
        return self.references[path]


def describe_culprit(culprit: Any) -> str:
    """Node, sequence and token of the first value that is not finite, as far as they are known."""
    if culprit is None:
        return "an unknown node"
    parts = [f"node {culprit.node} ({culprit.text})"]
    parts += [] if culprit.sequence is None else [f"sequence {culprit.sequence} of the step"]
    parts += [] if culprit.token is None else [f"token {culprit.token}"]
    return ", ".join(parts)
