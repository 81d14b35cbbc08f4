"""The reference model of a KL: frozen, never trained."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from holdfast_worker.gpu_memory import drop_garbage
from holdfast_worker.model_hub.cache import model_directory
from holdfast_worker.model_opening import Opening
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.engines.engine import TrainingEngine
from holdfast_worker.trainer.model.model_digests import ModelDigests
from holdfast_worker.trainer.model.model_source import ModelSource


class References:
    """One reference model, opened when first requested; a different path replaces it."""

    def __init__(self, engine: TrainingEngine, models: ModelDigests) -> None:
        self.engine = engine
        self.models = models
        self.path: str | None = None
        self.model: Any = None

    @contextmanager
    def borrowed(
        self, path: str | None, *, dtype: str, offload: bool, digest: str | None = None
    ) -> Generator[Any]:
        """
        The reference on the device; with `offload` it goes back to the CPU afterwards, which
        changes no bit. Without a path, or at the path of an adapter's base, it is the model itself
        with its adapter switched off. `digest`: the recorded digest of the weights.
        """
        if path is None or self._is_base(path):
            with self._without_adapter() as model:
                yield model
            return
        if path != self.path:
            self.path, self.model = None, None  # Frees the old one before opening the new one.
            drop_garbage(self.engine.device)
            source = ModelSource(path, opening=Opening.of(self.engine.spec))
            self.models.check(source.path, digest, self.engine)
            self.model = source.open_model(dtype).eval().requires_grad_(False)
            self.path = path
        try:
            self._to_device(offload)
            yield self.model
        finally:
            if offload:
                self.model.to("cpu")

    def _to_device(self, offload: bool) -> None:
        try:
            self.model.to(self.engine.device)
        except (
            torch.OutOfMemoryError
        ) as error:  # Not caused by a micro-batch: smaller ones would not help.
            self.model.to("cpu")
            drop_garbage(self.engine.device)
            fix = (
                "use ZeRO over more ranks, or a smaller reference"
                if offload
                else "set reference.offload: true"
            )
            raise BadDataError(
                "Cannot score ref_logp "
                f"because the device has no room for the reference model '{self.path}' beside the "
                "one "
                f"that is trained: {fix}"
            ) from error

    def _is_base(self, path: str) -> bool:
        """
        Whether it is the base model of the trained adapter: that is already in memory, so no second
        copy is needed.
        """
        base = getattr(self.engine.module, "base_path", None)
        return base is not None and model_directory(path).resolve() == Path(base)

    @contextmanager
    def _without_adapter(self) -> Generator[Any]:
        if not hasattr(self.engine.module, "disable_adapter"):
            raise BadDataError(
                "Cannot score ref_logp "
                "because reference_path is null and the model has no adapter to switch off: name "
                "the "
                "reference model's directory"
            )
        with self.engine.module.disable_adapter():
            yield self.engine.model
