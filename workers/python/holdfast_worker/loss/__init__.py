"""The loss interpreter: one optimizer step's arithmetic, without any model code."""

from holdfast_worker.loss.program import LossProgram
from holdfast_worker.loss.step import Counts, Culprit, MicroBatch, StepOutcome, count_step, run_step

__all__ = ["Counts", "Culprit", "LossProgram", "MicroBatch", "StepOutcome", "count_step", "run_step"]
