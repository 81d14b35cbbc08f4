"""The loss interpreter: one optimizer step's arithmetic, without any model code."""

from holdfast_worker.loss.micro_batch import Counts, MicroBatch, count_step
from holdfast_worker.loss.mismatch import BEHAVIOUR, check_on_policy
from holdfast_worker.loss.program import LossProgram
from holdfast_worker.loss.step import Culprit, Program, StepOutcome, run_step, steepest

__all__ = [
    "BEHAVIOUR",
    "Counts",
    "Culprit",
    "LossProgram",
    "MicroBatch",
    "Program",
    "StepOutcome",
    "check_on_policy",
    "count_step",
    "run_step",
    "steepest",
]
