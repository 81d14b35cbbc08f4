"""Batches that lie in an artifact store, as a trainer reads them."""

from __future__ import annotations

from holdfast_worker.trainer.batch import read_sequences
from trainer_harness import io_of, read_by_trainer


def sequences_of(artifacts, batch):
    return read_sequences(read_by_trainer(batch), io_of(artifacts).read_artifact, None)
