"""Fixtures that several files ask for."""

from reward_files import file, pool_of
from styled_rewards import score
from torch_trainers import trainer

__all__ = ["file", "pool_of", "score", "trainer"]
