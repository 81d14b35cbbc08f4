"""
The Python side of Holdfast: one agent per host, one process per rank, and the roles' workers.

An import inside a function brings what is heavy: torch, numpy, transformers, vllm, deepspeed, or a
module of ours that begins with them. Only who uses it pays for it, and some of them read variables
at their import that a worker's boot sets before. No such import hides a cycle: `tests/tidy_test.ts`
follows it as well.
"""

__version__ = "0.1.0"
