"""
A vLLM worker extension that does what a broken transport or an unmended vLLM would: for the tests
of the proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast_worker.sampler.publication import read_tensors
from holdfast_worker.sampler.vllm_extension import PublicationExtension
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import Publication


class StaleExtension(PublicationExtension):
    """As the real one until told otherwise."""

    holdfast_stale: dict[str, Any] | None = None

    def holdfast_break(self, stale: dict[str, Any] | None) -> None:
        """
        `{"publication", "names", "repack"}`: hand over an older publication's tensors; whether to
        repack.
        """
        self.holdfast_stale = stale

    def _publication_tensors(
        self, publication: Publication, handed: list[str]
    ) -> Iterator[tuple[str, Any]]:
        stale = self.holdfast_stale or {"names": []}
        old = (
            dict(read_tensors(decode(Publication, stale["publication"]))) if stale["names"] else {}
        )
        for name, tensor in super()._publication_tensors(publication, handed):
            yield name, old[name] if name in stale["names"] else tensor

    def _publication_repack(self, model: Any) -> None:
        if (self.holdfast_stale or {}).get("repack", True):
            super()._publication_repack(model)
