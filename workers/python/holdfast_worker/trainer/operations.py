"""Training and scoring of one rank, on any engine: read, split, run, answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NotRequired, TypedDict

import msgpack
import torch

from holdfast_worker.algorithm import program_of
from holdfast_worker.loss import (
    BEHAVIOUR,
    Program,
    StepOutcome,
    check_on_policy,
    count_step,
    run_step,
    steepest,
)
from holdfast_worker.operation import OperationIO
from holdfast_worker.sampler.publication import probe_sequences
from holdfast_worker.trainer import numerics
from holdfast_worker.trainer.batch import (
    SequenceData,
    Update,
    read_batch,
    read_sequences,
    tokens_digest,
    updates_of,
)
from holdfast_worker.trainer.engines.engine import NonFiniteError, TrainingEngine
from holdfast_worker.trainer.engines.skipped_step import place_of, skipped_at
from holdfast_worker.trainer.micro_batches import check_columns, micro_batch
from holdfast_worker.trainer.model.model_digests import ModelDigests
from holdfast_worker.trainer.model.model_source import ModelSource
from holdfast_worker.trainer.model.output_head import target_values
from holdfast_worker.trainer.packing import check_packing, use_packed_attention
from holdfast_worker.trainer.pieces import Piece, Pieces
from holdfast_worker.trainer.references import References
from holdfast_worker.trainer.scoring import FORWARDS, passes, score_rows
from holdfast_worker.wire.answers import EvaluatedBatch, PublicationProbe, StepRecord
from holdfast_worker.wire.types import (
    ArtifactRef,
    Batch,
    PreferenceBatch,
    RatioBounds,
    SupervisedBatch,
    TrainerEvaluate,
    TrainerScore,
    TrainerTrain,
    TrajectoryBatch,
)

Cut = TrainerTrain | TrainerEvaluate | TrainerScore


class Counted(TypedDict):
    """The content of a step, over all ranks."""

    n_tokens: float
    n_sequences: float
    micro_batches: int


class How(TypedDict):
    """What the forward receives besides; of the temperature alone where there is no vocabulary."""

    temperature: float
    chunk_tokens: NotRequired[int | None]
    packed: NotRequired[bool]


@dataclass
class Work:
    """A batch, read and checked before anything is changed."""

    program: Program
    sequences: list[SequenceData]
    updates: list[Update]
    columns: set[str]
    coef: dict[str, float]
    tokens_max: int
    pairs: bool  # Sequences form pairs, which are never split.
    packed: bool
    how: How
    clip: RatioBounds | None = (
        None  # Whether the distance of the policy from the sampling policy is measured.
    )
    on_policy: bool = False  # Whether it should then be 0, up to rounding.
    tokens_sha256: str | None = None  # Of what rows were rendered to; None: the batch has tokens.


class TrainingOperations:
    """
    What needs torch. `head`: the model's head; None: a vocabulary. `models`: known digests of
    directories.
    """

    def __init__(
        self, engine: TrainingEngine, *, models: ModelDigests, head: str | None = None
    ) -> None:
        self.engine = engine
        self.head = head
        self.forward: Callable[..., dict[str, torch.Tensor]] = FORWARDS[head]
        self.programs: dict[tuple[str, bool], Program] = {}
        self.references = References(engine, models)
        self.has_dropout = numerics.has_dropout(engine.spec)
        # Whether a step has shown that the sampler computes the model that is trained here.
        self.agrees_with_sampler = False
        self.cut: Pieces | None = None  # The micro-batches that are running or ran last.

    def prepare(
        self, args: TrainerTrain | TrainerEvaluate, io: OperationIO, source: ModelSource
    ) -> Work:
        """Reads everything a `train` needs. Raises before the first step, never between two."""
        batch, sequences = self._read(args.batch, io, source)
        # Without old_logp, a single step of the version that sampled reads logp.detach() instead.
        recorded = {} if isinstance(batch, SupervisedBatch) else batch.columns
        is_current = len(batch.updates) == 1 and "old_logp" not in recorded
        program = self._program(args.loss, io, is_current)
        updates = updates_of(batch, sequences)
        columns = check_columns(program.columns, sequences)
        mismatch = args.mismatch if isinstance(args, TrainerTrain) else None
        clip = mismatch if "logp" in program.live and isinstance(batch, TrajectoryBatch) else None
        if clip is not None:
            columns = columns | {BEHAVIOUR}
        packed = self._packs(args)
        if packed:
            self._pack(self.engine.model)
        version = args.from_ if isinstance(args, TrainerTrain) else None
        is_on_policy = all(sequence.sampled_by == version for sequence in sequences)
        return Work(
            program,
            sequences,
            updates,
            columns,
            coef=batch.coef,
            tokens_max=args.micro_batch_tokens_max,
            pairs=isinstance(batch, PreferenceBatch),
            packed=packed,
            how=self._how(args, batch),
            clip=clip,
            on_policy=clip is not None and is_on_policy and not self.has_dropout,
            tokens_sha256=None if isinstance(batch, TrajectoryBatch) else tokens_digest(sequences),
        )

    def _packs(self, args: Cut) -> bool:
        """Whether rows are packed: a model without a vocabulary sees padded rows."""
        return args.packing and self.head is None

    def _how(self, args: Cut, batch: Batch) -> How:
        """How the forward feeds rows to the model: as recorded with the step, or as configured."""
        temperature = batch.temperature
        if self.head is not None:
            return {"temperature": temperature}
        return {
            "temperature": temperature,
            "chunk_tokens": args.logits_chunk_tokens,
            "packed": self._packs(args),
        }

    def _read(
        self, ref: ArtifactRef, io: OperationIO, source: ModelSource
    ) -> tuple[Batch, list[SequenceData]]:
        batch = read_batch(io.read_artifact(ref))
        tokenizer = None if isinstance(batch, TrajectoryBatch) else source.tokenizer
        return batch, read_sequences(batch, io.read_artifact, tokenizer)

    def _pack(self, model: Any) -> None:
        """
        Packed attention for a model, after proving that it separates sequences. Once per model.
        """
        module = self.engine.module if model is self.engine.model else model
        if getattr(module, "packs_rows", False):
            return
        use_packed_attention(module)
        vocabulary = module.config.get_text_config().vocab_size
        with self._without_dropout():
            check_packing(model, vocabulary=vocabulary, device=self.engine.device)
        module.packs_rows = True

    @contextmanager
    def _without_dropout(self) -> Generator[None]:
        """Scoring must not be random."""
        if not self.has_dropout:
            yield
            return
        self.engine.module.eval()
        try:
            yield
        finally:
            self.engine.module.train()

    def _program(self, ref: ArtifactRef, io: OperationIO, is_current: bool) -> Program:
        key = (ref.sha256, is_current)
        if key not in self.programs:
            self.programs = {
                key: program_of(json.loads(io.read_artifact(ref)), old_is_current=is_current)
            }
        return self.programs[key]

    def step(
        self, work: Work, update: Update, *, lr: float, number: int, io: OperationIO
    ) -> StepRecord:
        """
        One optimizer step: its StepRecord. If it has `skipped`, no rank stepped, and nothing has
        changed. `number`: the step's number, for its randomness.
        """
        scale = self.engine.loss_scale
        before = scale.state()
        outcome, counted, grad_norm = self._try_step(work, update, lr=lr, number=number, io=io)
        # What overflows only because the loss is scaled is computed again, and no batch is lost.
        while grad_norm is None and outcome.finite and scale.halve():
            outcome, counted, grad_norm = self._try_step(work, update, lr=lr, number=number, io=io)
        used = scale.value
        if grad_norm is None:
            scale.restore(before)
        else:
            scale.count_step()
        loss = outcome.loss if outcome.finite else None
        record: StepRecord = {
            "loss": loss,
            "grad_norm": grad_norm,
            "lr": lr,
            **counted,
            "metrics": outcome.metrics,
        }
        if work.tokens_sha256 is not None:
            record["tokens_sha256"] = work.tokens_sha256
        if scale.changes:
            record["loss_scale"] = used
        if grad_norm is not None:
            return record
        culprit = steepest(outcome, self.engine.gather) if outcome.finite else outcome.culprit
        return {**record, "skipped": skipped_at("grad_norm" if outcome.finite else "loss", culprit)}

    def _try_step(
        self, work: Work, update: Update, *, lr: float, number: int, io: OperationIO
    ) -> tuple[StepOutcome, Counted, float | None]:
        """One pass over the step's micro-batches, and the step with its norm. None: no rank stepped,
        because the gradients are not finite, as those of a loss that is not.
        """
        if self.has_dropout:
            torch.manual_seed(
                numerics.step_seed(self.engine.spec.seed, number=number, rank=self.engine.rank)
            )

        def backward(loss: torch.Tensor, boundary: bool) -> None:
            io.happened(
                "micro_batch"
            )  # In the middle of a step: gradients are half gathered, and the other ranks wait.
            self.engine.backward(loss, boundary)

        outcome, counted = self._run(work, update, backward, io)
        # Once: the first step of the first batch still has the parameters that sampled.
        if work.on_policy and not self.agrees_with_sampler and update is work.updates[0]:
            check_on_policy(outcome.metrics)
            self.agrees_with_sampler = True
        return outcome, counted, self.engine.step(lr)

    @torch.no_grad()
    def evaluate(self, work: Work, io: OperationIO) -> EvaluatedBatch:
        """The loss of a batch and its metrics, as for one step that is not taken."""
        whole = Update(list(range(len(work.sequences))))
        with self._without_dropout():
            outcome, counted = self._run(work, whole, lambda loss, boundary: None, io)
        if not outcome.finite:
            place = place_of(skipped_at("loss", outcome.culprit))
            raise NonFiniteError(
                f"Cannot evaluate because the loss is not finite: first at {place} of the batch"
            )
        return {"loss": outcome.loss, **counted, "metrics": outcome.metrics}

    def _run(
        self,
        work: Work,
        update: Update,
        backward: Callable[[torch.Tensor, bool], None],
        io: OperationIO,
    ) -> tuple[StepOutcome, Counted]:
        """The step's outcome and its counts."""
        engine = self.engine
        sequences = [work.sequences[place] for place in update.sequences]
        self.cut = pieces = Pieces.of(
            sequences,
            work.tokens_max,
            world_size=engine.world_size,
            pairs=work.pairs,
            packed=work.packed,
        )
        masks, groups = (
            [sequence.mask for sequence in sequences],
            [sequence.group for sequence in sequences],
        )
        counts = count_step(masks, groups, pairs=work.pairs)
        mine = pieces.ranks[engine.rank]
        done = 0

        def counted_backward(loss: torch.Tensor, boundary: bool) -> None:
            nonlocal done
            backward(loss, boundary)
            done += 1
            io.progress("micro_batch", done, len(mine))

        # Only the first step still has the parameters that old_logp was computed with, and only if
        # nothing is stale.
        current = update is work.updates[0] and not any(
            one.sequence_columns.get("staleness") for one in sequences
        )
        cut_of = partial(
            micro_batch, sequences, columns=work.columns, device=engine.device, pairs=work.pairs
        )
        outcome = run_step(
            work.program,
            [cut_of(piece.rows, shared=piece.shared) for piece in mine],
            counts=counts,
            forward=lambda rows, need: self.forward(engine.model, rows, need=need, **work.how),
            backward=counted_backward,
            gather=engine.gather,
            world_size=engine.world_size,
            coef=work.coef,
            logp_current="old_logp" if current and "old_logp" in work.columns else None,
            clip=work.clip,
        )
        return outcome, {
            "n_tokens": counts.n_tokens,
            "n_sequences": counts.n_sequences,
            "micro_batches": pieces.count,
        }

    @torch.no_grad()
    def probe(self) -> PublicationProbe | None:
        """
        What the version says of fixed tokens, by the forward that trains. Collective. None: it has
        no vocabulary, or its log-probabilities are not finite.
        """
        if self.head is not None:
            return None
        config = self.engine.module.config.get_text_config()
        positions = getattr(config, "max_position_embeddings", None) or 1 << 30
        first = probe_sequences(config.vocab_size, positions)[0]
        tokens = torch.tensor([first], device=self.engine.device)
        with self._without_dropout():
            logits = self.engine.model(input_ids=tokens, use_cache=False).logits[0, :-1]
        (logp,) = target_values(logits, tokens[0, 1:], temperature=1.0, entropy=False)
        return {"tokens": first, "logp": logp.tolist()} if logp.isfinite().all() else None

    def score(
        self, args: TrainerScore, io: OperationIO, *, source: ModelSource, dtype: str
    ) -> dict[str, bytes]:
        """
        Columns by name: MessagePack {values: [bin float32 per sequence]}, the same on every rank.
        """
        # Not later: if a rank left, the others would wait in the next gather.
        io.check_cancelled()
        batch, sequences = self._read(args.batch, io, source)
        packed = self._packs(args)
        self.cut = pieces = Pieces.of(
            sequences,
            args.micro_batch_tokens_max,
            world_size=self.engine.world_size,
            packed=packed,
        )
        mine = pieces.ranks[self.engine.rank]
        forward = partial(self.forward, need={"logp"}, **self._how(args, batch))
        found: dict[str, bytes] = {}
        for columns in passes(args.columns, self.head):
            with self._scorer(columns, args, dtype) as model, self._without_dropout():
                if packed:
                    self._pack(model)
                scored: dict[str, dict[int, bytes]] = {name: {} for name in columns}
                for done, piece in enumerate(mine):
                    self._score_rows(forward, model, sequences, piece, scored)
                    io.progress(columns[0], done + 1, len(mine))
            for rank in self.engine.gather(scored):
                for name in columns:
                    scored[name].update(rank[name])
            for name in columns:
                found[name] = msgpack.packb(
                    {"values": [scored[name][place] for place in range(len(sequences))]}
                )
        return found

    def _scorer(
        self, columns: Sequence[str], args: TrainerScore, dtype: str
    ) -> AbstractContextManager[Any]:
        if columns != ("ref_logp",):
            return nullcontext(self.engine.model)
        return self.references.borrowed(
            args.reference_path,
            dtype=dtype,
            offload=args.reference_offload,
            digest=args.reference_digest,
        )

    def _score_rows(
        self,
        forward: Callable[[Any, Any], dict[str, torch.Tensor]],
        model: Any,
        sequences: list[SequenceData],
        piece: Piece,
        found: dict[str, dict[int, bytes]],
    ) -> None:
        """
        Adds the rows of a micro-batch to each column: one number per token of a sequence, or one.
        """
        part = micro_batch(
            sequences, piece.rows, columns=set(), device=self.engine.device, shared=piece.shared
        )
        lengths = [len(sequences[place].tokens) for place in piece.rows] or [1]
        scored = score_rows(forward, model, part, columns=tuple(found), lengths=lengths)
        for name, values in scored.items():
            numbers = values.cpu().numpy()
            for row, place in enumerate(piece.rows):
                found[name][place] = numbers[row, : lengths[row]].astype("<f4").tobytes()
