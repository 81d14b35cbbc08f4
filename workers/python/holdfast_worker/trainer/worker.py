"""
The trainer role: one rank's operations, as `workers/roles/trainer.ts` declares them.

A trainer holds one version in memory. Every operation names the version it starts from; a trainer
that holds another answers `not_resident` and does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from holdfast_worker import weights
from holdfast_worker.gpu_memory import give_back
from holdfast_worker.model_hub.cache import model_directory
from holdfast_worker.model_opening import Opening
from holdfast_worker.operation import BadDataError, OperationIO, RankContext
from holdfast_worker.rank.failures import cause_of
from holdfast_worker.trainer import checkpoint, numerics
from holdfast_worker.trainer.engines.engine import check_same
from holdfast_worker.trainer.engines.schedule import check_schedule, factor
from holdfast_worker.trainer.engines.skipped_step import too_many
from holdfast_worker.trainer.model.adapter import adapted_source
from holdfast_worker.trainer.model.create_model import create_model
from holdfast_worker.trainer.model.model_digests import ModelDigests
from holdfast_worker.trainer.model.model_source import ModelSource
from holdfast_worker.trainer.moving_average import MovingAverage
from holdfast_worker.wire.answers import (
    NotResident,
    Numerics,
    StepRecord,
    TensorEntry,
    TrainerCreateModelAnswer,
    TrainerCreditAnswer,
    TrainerEvaluateAnswer,
    TrainerInspectModelAnswer,
    TrainerLoadAnswer,
    TrainerMeasureRowsAnswer,
    TrainerOpenAlgorithmAnswer,
    TrainerPublishAnswer,
    TrainerSaveAnswer,
    TrainerScoreAnswer,
    TrainerTrainAnswer,
)
from holdfast_worker.wire.operation import RankOperation, typed
from holdfast_worker.wire.received import decode, plain
from holdfast_worker.wire.types import (
    Optimizer,
    TrainerCreateModel,
    TrainerCredit,
    TrainerEvaluate,
    TrainerInspectModel,
    TrainerLoad,
    TrainerMeasureRows,
    TrainerOpenAlgorithm,
    TrainerPublish,
    TrainerSave,
    TrainerScore,
    TrainerSpec,
    TrainerTrain,
)


class TrainerInfo(TypedDict):
    """A rank's specification, from its group."""

    device: str
    packages: dict[str, str]
    numerics: Numerics


@dataclass(frozen=True)
class Trained:
    """The answer of the step that created a version, and the version it started from."""

    base: str
    answer: TrainerTrainAnswer


class Worker:
    """
    One rank of a trainer group. `held` is the version in memory; None while no version can be
    trusted.
    """

    def __init__(self, context: RankContext) -> None:
        self.context = context
        self.spec = decode(TrainerSpec, context.spec)
        self.opening = Opening.of(self.spec)
        self.held: str | None = None
        # Optimizer steps taken since the base: the schedule's state. Skipped ones do not count.
        self.steps_done = 0
        self.skipped = 0  # Consecutive skipped steps up to now.
        self.optimizer: Any = None  # The `Optimizer` of what is held.
        self.source: Any = None
        # The answer of the step that created `held`, for an engine that lost it.
        self.trained: Trained | None = None
        self.engine: Any = None
        self.average: MovingAverage | None = None
        self.row_lengths: Any = None
        self.trainer: Any = None
        self.models = ModelDigests()
        self.device = "cpu"
        self.operations: dict[str, RankOperation] = {
            "create_model": typed(TrainerCreateModel, self.create_model),
            "inspect_model": typed(TrainerInspectModel, self.inspect_model),
            "measure_rows": typed(TrainerMeasureRows, self.measure_rows),
            "open_algorithm": typed(TrainerOpenAlgorithm, self.open_algorithm),
            "credit": typed(TrainerCredit, self.credit),
            "load": self._giving_back(typed(TrainerLoad, self.load)),
            "train": self._giving_back(self._telling_cut(typed(TrainerTrain, self.train))),
            "score": self._giving_back(self._telling_cut(typed(TrainerScore, self.score))),
            "evaluate": self._giving_back(self._telling_cut(typed(TrainerEvaluate, self.evaluate))),
            "publish": self._giving_back(typed(TrainerPublish, self.publish)),
            "save": self._giving_back(typed(TrainerSave, self.save)),
        }

    def _giving_back(self, operation: RankOperation) -> RankOperation:
        """
        Runs the operation; afterwards the GPU memory that it needed is free for a sampler on the
        same GPU.
        """

        def run(args: object, io: OperationIO) -> Mapping[str, object]:
            try:
                return operation(args, io)
            finally:
                give_back(self.device)

        return run

    def _telling_cut(self, operation: RankOperation) -> RankOperation:
        """
        Runs the operation; if the device has no room for it, the engine learns the size of its
        micro-batches.
        """

        def run(args: object, io: OperationIO) -> Mapping[str, object]:
            try:
                return operation(args, io)
            except Exception as error:
                if cause_of(error) == "out_of_memory" and self.trainer.cut:
                    cut = self.trainer.cut
                    io.progress(
                        "no_room",
                        0,
                        longest_tokens=cut.longest_tokens,
                        micro_batch_tokens=cut.micro_batch_tokens,
                    )
                raise

        return run

    def boot(self) -> TrainerInfo:
        """Heavy imports, fixed numerics, and the meeting of all ranks. No model yet."""
        numerics.prepare_environment(self.spec.threads)
        self._check_spec()
        import transformers

        transformers.utils.logging.disable_progress_bar()
        device = self.device = numerics.choose_device(self.spec.device, self.context.rank)
        numerics.make_deterministic(device, threads=self.spec.threads, seed=self.spec.seed)
        self.engine = self._make_engine(device)
        from holdfast_worker.trainer.operations import TrainingOperations

        self.trainer = TrainingOperations(self.engine, head=self.spec.head, models=self.models)
        self.numerics = numerics.describe(
            self.spec, device=device, world_size=self.context.world_size
        )
        return {
            "device": device,
            "packages": numerics.package_versions(),
            "numerics": self.numerics,
        }

    def _check_spec(self) -> None:
        numerics.check_adapter(self.spec)
        if self.spec.engine == "torch" and self.context.world_size != 1:
            raise ValueError(
                f"Cannot start a torch trainer because trainer.ranks is {self.context.world_size}: "
                "it has one rank; use engine: deepspeed for more"
            )

    def _make_engine(self, device: str) -> Any:
        if self.spec.engine == "torch":
            from holdfast_worker.trainer.engines.engine_torch import TorchEngine

            return TorchEngine(self.spec, device)
        from holdfast_worker.trainer.engines import engine_deepspeed

        engine_deepspeed.prepare_environment(self.context, device)
        return engine_deepspeed.DeepSpeedEngine(self.spec, context=self.context, device=device)

    def create_model(self, args: TrainerCreateModel, io: OperationIO) -> TrainerCreateModelAnswer:
        """Rank 0 creates the model; a second run creates the same bits."""
        digest = ""
        if self.context.rank == 0:
            digest = create_model(
                args.recipe, seed=args.seed, directory=args.dir, home=self.context.home
            )
        return {"dir": args.dir, "digest": self.engine.gather(digest)[0]}

    def inspect_model(
        self, args: TrainerInspectModel, io: OperationIO
    ) -> TrainerInspectModelAnswer:
        """Reads the directory on every rank: one that does not see it fails here, not later."""
        directory = model_directory(args.dir)
        config = weights.check_model_directory(directory)
        tensors: list[TensorEntry] = []
        digest = self.models.of(directory, manifest=tensors)
        parameters = sum(weights.count_elements(tensor["shape"]) for tensor in tensors)
        return {
            "digest": digest,
            "parameters": parameters,
            "architecture": config["architectures"][0],
        }

    def measure_rows(self, args: TrainerMeasureRows, io: OperationIO) -> TrainerMeasureRowsAnswer:
        """Counts the tokens of rows on rank 0. Needs no version."""
        if self.context.rank != 0:
            return {"rows": 0, "model_tokens_max": None}
        if self.row_lengths is None:
            from holdfast_worker.trainer.row_lengths import RowLengths

            self.row_lengths = RowLengths(self.opening)
        return self.row_lengths.measure(args, io)

    def open_algorithm(
        self, args: TrainerOpenAlgorithm, io: OperationIO
    ) -> TrainerOpenAlgorithmAnswer:
        """Tries an algorithm's file and reports what it reads. Needs no model."""
        from holdfast_worker.algorithm import operations

        return operations.open_algorithm(args, io)

    def credit(self, args: TrainerCredit, io: OperationIO) -> TrainerCreditAnswer:
        """What an algorithm's file assigns to a round. Needs no model, changes nothing."""
        from holdfast_worker.algorithm import operations

        return operations.credit(args, io)

    def load(self, args: TrainerLoad, io: OperationIO) -> TrainerLoadAnswer:
        """
        Loads a version from a model directory or a checkpoint. The previous version is gone, even
        on failure.
        """
        self.held, self.trained, self.average = None, None, None
        check_schedule(args.optimizer.schedule)
        saved, steps_done, skipped, state, scale = args.checkpoint, 0, 0, None, None
        base = model_directory(args.model_path)
        world_size = self.context.world_size
        if saved is not None:
            io.progress("verify", 0)
            checkpoint.verify(self.engine, saved)
            record = checkpoint.read_record(Path(saved.dir), self.numerics)
            check_same(str(record["optimizer"]["name"]), args.optimizer)
            steps_done, world_size = record["steps_done"], record["numerics"]["world_size"]
            skipped = record.get("skipped", 0)
            scale = record.get("loss_scale")
            state = Path(saved.dir) / "state"
        else:
            io.progress("verify", 0)
            weights.check_model_directory(base)
            self.models.check(base, args.model_digest, self.engine)
        io.progress("load", 0)
        self.source = self._source(base, saved and Path(saved.dir) / "hf")
        self.engine.open(self.source, optimizer=args.optimizer, state=state, world_size=world_size)
        self.engine.loss_scale.restore(scale)
        if self.spec.ema_decay is not None:
            self.average = MovingAverage(self.engine, decay=self.spec.ema_decay, state=state)
        if saved is not None:
            checkpoint.restore_rng(self.engine, Path(saved.dir), world_size=world_size)
        self.optimizer, self.steps_done, self.skipped = args.optimizer, steps_done, skipped
        self.held = args.version
        return {"version": args.version, "numerics": self.numerics}

    def _source(self, base: Path, saved: Path | None) -> Any:
        """A checkpoint is a model by itself; one of an adapter belongs to its base."""
        lora = self.spec.lora
        if lora is None:
            return ModelSource(saved or base, head=self.spec.head, opening=self.opening)
        return adapted_source(
            lora,
            seed=self.spec.seed,
            path=base,
            saved=saved,
            engine=self.engine,
            opening=self.opening,
        )

    def train(self, args: TrainerTrain, io: OperationIO) -> TrainerTrainAnswer | NotResident:
        """From `from` to `to`: one optimizer step per entry of the batch's `updates`."""
        if self.trained is not None and self.held == args.to and self.trained.base == args.from_:
            return self.trained.answer  # The step was taken, but its answer was lost.
        if self.held != args.from_:
            return {"not_resident": self.held}
        io.check_cancelled()
        work = self.trainer.prepare(args, io, self.source)
        self._change(args.optimizer)
        self.held, self.trained = (
            None,
            None,
        )  # Between versions: after an error from here on no version is held, unless it is undone.
        steps: list[StepRecord] = []
        skipped = self.skipped
        for update in work.updates:
            step = self.trainer.step(
                work, update, lr=self._learning_rate(), number=self.steps_done, io=io
            )
            steps.append(step)
            refused = step.get("skipped")
            skipped = 0 if refused is None else skipped + 1
            if refused is None:
                self.steps_done += 1
                if self.average is not None:
                    self.average.update()
            elif skipped == args.non_finite_max:
                if all("skipped" in one for one in steps):
                    self.held = args.from_  # Nothing has changed.
                raise too_many(skipped, refused)
            loss = {} if refused or step["loss"] is None else {"loss": step["loss"]}
            io.progress("train", len(steps), len(work.updates), **loss)
        self.held, self.skipped = args.to, skipped
        self.trained = Trained(args.from_, {"version": args.to, "steps": steps})
        return self.trained.answer

    def _change(self, optimizer: Optimizer) -> None:
        if optimizer == self.optimizer:
            return
        check_schedule(optimizer.schedule)
        check_same(self.optimizer.name, optimizer)
        self.engine.change(optimizer)
        self.optimizer = optimizer

    def _learning_rate(self) -> float:
        return self.optimizer.lr * factor(self.optimizer.schedule, self.steps_done)

    def score(self, args: TrainerScore, io: OperationIO) -> TrainerScoreAnswer | NotResident:
        """The model's scores of the batch's tokens. Writes nothing: safe to run twice."""
        if self.held != args.version:
            return {"not_resident": self.held}
        columns = self.trainer.score(args, io, source=self.source, dtype=self.spec.dtype)
        for name in args.columns:
            io.blob(columns[name])
        return {"columns": [*args.columns]}

    def evaluate(
        self, args: TrainerEvaluate, io: OperationIO
    ) -> TrainerEvaluateAnswer | NotResident:
        """The loss and its metrics on a batch. Changes nothing: safe to run twice."""
        if self.held != args.version:
            return {"not_resident": self.held}
        io.check_cancelled()
        return self.trainer.evaluate(self.trainer.prepare(args, io, self.source), io)

    def publish(self, args: TrainerPublish, io: OperationIO) -> TrainerPublishAnswer | NotResident:
        """
        Writes the weights, or their moving average, as a plain Hugging Face directory, which is
        complete or absent. A second run writes the same.
        """
        if self.held != args.version:
            return {"not_resident": self.held}
        if args.average and self.average is None:
            raise BadDataError(
                "Cannot publish a moving average because trainer.ema_decay is not set"
            )
        form = args.form or (self.spec.lora.publish if self.spec.lora else "merged")
        publication = checkpoint.publish(
            self.engine,
            self.source,
            target=Path(args.dir),
            home=self.context.home,
            dtype=self.spec.dtype,
            version=args.version,
            form=form,
            average=self.average if args.average else None,
        )
        if args.average:
            return publication  # The probe is the trained weights'.
        if form == "adapter" and self.spec.lora and self.spec.lora.quantize:
            return publication  # A sampler's base has more bits than the one that is trained.
        probe = self.trainer.probe()
        return publication if probe is None else {**publication, "probe": probe}

    def save(self, args: TrainerSave, io: OperationIO) -> TrainerSaveAnswer | NotResident:
        """A checkpoint. Each rank answers the files it wrote; the engine commits their union."""
        if self.held != args.version:
            return {"not_resident": self.held}
        record: checkpoint.StateRecord = {
            "version": args.version,
            "steps_done": self.steps_done,
            "optimizer": plain(self.optimizer),
            "numerics": self.numerics,
        }
        if self.skipped:
            record["skipped"] = self.skipped
        if self.engine.loss_scale.changes:
            record["loss_scale"] = self.engine.loss_scale.state()
        return checkpoint.save(
            self.engine,
            self.source,
            directory=Path(args.dir),
            home=self.context.home,
            record=record,
            average=self.average,
        )
