"""The reference model in a device's memory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from holdfast_worker.operation import BadDataError
from holdfast_worker.rank.failures import cause_of
from holdfast_worker.trainer.model.model_digests import ModelDigests
from holdfast_worker.trainer.references import References


class Large(torch.nn.Linear):
    """Fits nowhere but on the CPU."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.moves: list[str] = []

    def to(self, device):
        self.moves.append(device)
        if device != "cpu":
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self


@pytest.mark.parametrize(
    "offload, mend", [(False, "reference.offload: true"), (True, "a smaller reference")]
)
def test_a_reference_that_does_not_fit_is_no_matter_of_micro_batches(offload, mend):
    references = References(
        SimpleNamespace(device="cuda:0", module=torch.nn.Linear(2, 2)), ModelDigests()
    )
    references.path, references.model = "/ref", Large()
    with (
        pytest.raises(
            BadDataError, match=f"no room for the reference model '/ref'.*{mend}"
        ) as raised,
        references.borrowed("/ref", dtype="float32", offload=offload),
    ):
        pass
    assert cause_of(raised.value) == "bad_data"  # Or the engine would halve micro-batches for ever.
    assert references.model.moves[:2] == ["cuda:0", "cpu"]
