"""
Algorithms in Python: a user's file with `Config`, `credit`, `statistics` and `loss`, as a loss that
trains.
"""

from holdfast_worker.algorithm.algorithm import Algorithm
from holdfast_worker.algorithm.program import PythonProgram, program_of, recorded_program
from holdfast_worker.algorithm.source import AlgorithmError

__all__ = ["Algorithm", "AlgorithmError", "PythonProgram", "program_of", "recorded_program"]
