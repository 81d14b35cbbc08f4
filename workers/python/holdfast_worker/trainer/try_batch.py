"""
An algorithm tried on a recorded batch, in one process, under a debugger if you like: credit, then
loss and gradient.

`python -m holdfast_worker.trainer.try_batch JOB.json`, with standard input and output free for
`breakpoint()`.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
import torch
from msgspec.structs import replace
from numpy.typing import NDArray
from torch import Tensor

from holdfast_worker.algorithm import Algorithm, AlgorithmError, PythonProgram, program_of
from holdfast_worker.algorithm.credit import Assigned, assign, read_round
from holdfast_worker.loss import MicroBatch, StepOutcome, count_step, run_step
from holdfast_worker.model_opening import Opening
from holdfast_worker.operation import BadDataError, OperationIO
from holdfast_worker.trainer.batch import SequenceData, Update, read_sequences, updates_of
from holdfast_worker.trainer.forward import policy_forward
from holdfast_worker.trainer.micro_batches import check_columns, micro_batch
from holdfast_worker.trainer.trial_report import Report, show
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import ArtifactRef, TrajectoryBatch

# What replaces a column that the batch lacks because its run did not read it.
STANDS_IN = {"old_logp": "behaviour_logp", "ref_logp": "behaviour_logp"}


class TriedRound(TypedDict):
    """Of a round as credit saw it, what is shown. [N] each."""

    reward: list[float]
    stop: list[str]


class Job(TypedDict):
    """
    As `runs/trials/try_algorithm.ts` writes it: an algorithm in Python (`python`), or what an algorithm of
    the table has assigned, and its losses.
    """

    artifacts_dir: str
    batch: ArtifactRef
    masked: NotRequired[list[int]]
    round: TriedRound
    draws: list[int]  # [N]
    python: NotRequired[Mapping[str, Any]]
    assigned: NotRequired[Assigned]
    losses: NotRequired[dict[str, Mapping[str, Any]]]
    model: NotRequired[str | None]
    opening: NotRequired[dict[str, bool]]  # How the run opens its model.
    json: bool
    title: str


@dataclass
class Tried:
    """
    One loss on one optimizer step. `gradient` [S]: norm of the live input's gradient over the
    tokens of each sequence.
    """

    part: str
    update: int
    outcome: StepOutcome
    gradient: NDArray[Any]
    loss: NDArray[Any]  # [S] what each sequence adds to the loss
    places: list[int]


class Trial:
    """
    A recorded batch, and what is tried on it: {file, source, settings}, or an algorithm of the
    table.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        files = OperationIO.alone(job["artifacts_dir"])
        ref = decode(ArtifactRef, job["batch"])
        self.batch = decode(TrajectoryBatch, json.loads(files.read_artifact(ref)))
        self.sequences = read_sequences(self.batch, files.read_artifact, None)
        self.notes: list[str] = []
        self.masked = set(job.get("masked", []))
        python = job.get("python")
        self.algorithm = Algorithm(python) if python else None
        self.coef = dict(self.batch.coef)
        if self.algorithm:
            self.coef = {**self.algorithm.first_coef(), **self.coef}
        self.model: Any = None

    def assign(self) -> Assigned:
        """
        Credit, which replaces what the batch was trained with. A table's algorithm has assigned
        already.
        """
        if self.algorithm is None:
            assigned = self.job.get("assigned")
            if assigned is None:
                raise BadDataError(
                    "Cannot try an algorithm of the table on a job without `assigned`"
                )
        else:
            columns = {name: self._sampled(name) for name in ("old_logp", "ref_logp", "values")}
            bootstrap = [0.0] * len(self.sequences)
            round_ = read_round(
                {**self.job["round"], **columns, "bootstrap": bootstrap, "coef": self.coef}
            )
            assigned = assign(self.algorithm, round_)
            self.notes = [note for note in self.notes if note.split()[0] in round_._read]
        for name in ("advantage", "returns"):
            for sequence, value in zip(self.sequences, assigned.get(name) or []):
                sequence.token_columns[name] = _over_tokens(sequence, value)
        return assigned

    def _sampled(self, name: str) -> list[list[float]]:
        """A column over the sampled tokens, as credit sees it."""
        return [self._column(sequence, name)[sequence.mask].tolist() for sequence in self.sequences]

    def _column(self, sequence: SequenceData, name: str) -> NDArray[Any]:
        recorded = "old_values" if name == "values" else name
        if recorded in sequence.token_columns:
            return sequence.token_columns[recorded]
        other = STANDS_IN.get(name)
        note = f"{name} is not in the batch: {f'{other} stands' if other else '0 stands'} for it"
        if note not in self.notes:
            self.notes.append(note)
        return (
            sequence.token_columns[other] if other else np.zeros(len(sequence.tokens), np.float32)
        )

    def losses(self) -> list[Tried]:
        """Every loss of the algorithm on every optimizer step of the batch."""
        tried: list[Tried] = []
        for part, program in self._programs().items():
            missing = program.columns - {"margin"}
            for sequence in self.sequences:
                for name in missing - set(sequence.sequence_columns):
                    sequence.token_columns[name] = self._column(sequence, name)
            check_columns(program.columns, self.sequences)
            for number, update in enumerate(self._updates(part), 1):
                tried.append(self._step(part, program, update, number))
        if self.masked:
            self.notes.append(f"mask_truncated leaves {len(self.masked)} of them out of the loss")
        return tried

    def _updates(self, part: str) -> list[Update]:
        """
        The batch's steps, masked by the tried algorithm instead of the run's; a value loss is not
        masked.
        """
        masked = self.masked if part == "loss" else set[int]()
        alive = {one.group for place, one in enumerate(self.sequences) if place not in masked}
        steps = [groups for groups in self.batch.updates if alive.intersection(groups)]
        if len(steps) < len(self.batch.updates):
            self.notes.append(
                f"{part}: {len(self.batch.updates) - len(steps)} steps have nothing to train on"
            )
        batch = replace(self.batch, masked=sorted(masked), updates=steps)
        return updates_of(batch, self.sequences)

    def _programs(self) -> Mapping[str, Any]:
        current = len(self.batch.updates) == 1 and "old_logp" not in self.batch.columns
        if self.algorithm is None:
            losses = self.job.get("losses", {}).items()
            return {part: program_of(recorded, old_is_current=current) for part, recorded in losses}
        with contextlib.redirect_stdout(
            io.StringIO()
        ):  # Hides what the file prints during a synthetic step.
            return {
                part: PythonProgram(self.algorithm, part, current)
                for part in ("loss", "value_loss")
                if self.algorithm.code.has(part)
            }

    def _step(self, part: str, program: Any, update: Update, number: int) -> Tried:
        sequences = [self.sequences[place] for place in update.sequences]
        rows = list(range(len(sequences)))
        mb = micro_batch(sequences, rows, columns=program.columns, device="cpu")
        kept: dict[str, Tensor] = {}

        def forward(mb: MicroBatch, need: set[str]) -> dict[str, Tensor]:
            live = self._live(mb, sequences, need)
            if torch.is_grad_enabled():
                kept.update(live)
            return live

        shares: list[NDArray[Any]] = []
        outcome = run_step(
            _Watching(program, shares),
            [mb],
            counts=count_step([one.mask for one in sequences], [one.group for one in sequences]),
            forward=forward,
            backward=lambda loss, boundary: loss.backward(),
            gather=lambda value: [value],
            world_size=1,
            coef=self.coef,
        )
        gradient = sum(_squares(live, mb.mask) for live in kept.values()) ** 0.5
        return Tried(
            part,
            number,
            outcome,
            gradient,
            shares[0] if shares else gradient * np.nan,
            update.sequences,
        )

    def _live(
        self, mb: MicroBatch, sequences: list[SequenceData], need: set[str]
    ) -> dict[str, Tensor]:
        """
        The model's live inputs, or without a model leaves: the sampled log-probabilities and the
        recorded values.
        """
        model = self.job.get("model")
        if model and need <= {"logp", "entropy"}:
            live = policy_forward(
                self._open_model(model),
                mb,
                need=need,
                temperature=self.batch.temperature,
                chunk_tokens=None,
            )
            for value in live.values():
                if value.requires_grad:
                    value.retain_grad()
            return live
        leaves: dict[str, Tensor] = {}
        for name in need:
            if name not in ("logp", "values"):
                raise BadDataError(
                    f"Cannot try the loss because it reads '{name}' of a model: give --model DIR"
                )
            columns = [
                self._column(one, "old_logp" if name == "logp" else "values") for one in sequences
            ]
            leaf = torch.zeros(mb.mask.shape)
            for row, column in enumerate(columns):
                leaf[row, : len(column)] = torch.tensor(column)
            leaves[name] = leaf.requires_grad_()
        return leaves

    def _open_model(self, path: str) -> Any:
        from transformers.utils import logging

        from holdfast_worker.trainer.model.model_source import ModelSource

        logging.disable_progress_bar()
        if self.model is None:
            opening = Opening(**self.job.get("opening", {}))
            self.model = ModelSource(Path(path), opening=opening).open_model("float32")
        return self.model


class _Watching:
    """The program; what each sequence adds to the loss is kept, where the program knows it."""

    def __init__(self, program: Any, shares: list[NDArray[Any]]) -> None:
        self.program = program
        self.live: set[str] = program.live
        self.columns: set[str] = program.columns
        self.shares = shares

    def open_step(self, *step: Any) -> Any:
        work = self.program.open_step(*step)
        report = work.report

        def reporting(kept: Any) -> StepOutcome:
            if isinstance(self.program, PythonProgram):
                self.shares.append(work.loss_by_sequence())
            return report(kept)

        work.report = reporting
        return work


def _squares(live: Tensor, mask: Tensor) -> NDArray[Any]:
    """[B] sums of the squared gradient over the trained tokens."""
    if live.grad is None:
        return np.zeros(len(live))
    return torch.where(mask, live.grad.double(), 0.0).square().sum(-1).numpy()


def _over_tokens(sequence: SequenceData, value: float | list[float]) -> NDArray[Any]:
    column = np.zeros(len(sequence.tokens), np.float32)
    column[sequence.mask] = value
    return column


def report(trial: Trial, assigned: Assigned, tried: list[Tried]) -> Report:
    advantage = [float(np.mean(value)) for value in assigned["advantage"]]
    round_ = trial.job["round"]
    declared = {"coef": assigned.get("coef"), "metrics": assigned.get("metrics")}
    credit = {name: values for name, values in declared.items() if values}
    return {
        "sequences": len(trial.sequences),
        "advantage": {"mean": float(np.mean(advantage)), "not_0": int(np.count_nonzero(advantage))},
        "credit": credit,
        "notes": trial.notes,
        "losses": [
            {
                "part": one.part,
                "update": one.update,
                "loss": one.outcome.loss if one.outcome.finite else None,
                "not_finite": one.outcome.culprit.text if one.outcome.culprit else None,
                "gradient": float(np.sqrt(np.square(one.gradient).sum())),
                "metrics": one.outcome.metrics,
                "rows": [
                    {
                        "sequence": place,
                        "draw": trial.job["draws"][place],
                        "reward": round_["reward"][place],
                        "advantage": advantage[place],
                        "tokens": int(trial.sequences[place].mask.sum()),
                        "stop": round_["stop"][place],
                        "loss": None if np.isnan(one.loss[row]) else float(one.loss[row]),
                        "gradient": float(one.gradient[row]),
                    }
                    for row, place in enumerate(one.places)
                ],
            }
            for one in tried
        ],
    }


def main() -> int:
    sys.path = [
        place for place in sys.path if place not in ("", str(Path.cwd()))
    ]  # As in a worker: one file.
    job: Job = json.loads(Path(sys.argv[1]).read_text())
    try:
        trial = Trial(job)
        assigned = trial.assign()
        summary = report(trial, assigned, trial.losses())
    except (AlgorithmError, BadDataError) as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(summary, indent=2)) if job["json"] else show(summary, job["title"])
    return 0 if all(one["loss"] is not None for one in summary["losses"]) else 3


if __name__ == "__main__":
    sys.exit(main())
