"""
What runs inside vLLM's own worker processes: weights replaced in place. Injected as
`worker_extension_cls`.

Both of vLLM's model runners (0.32 has two on GPU) answer `get_model` and reload from an iterator
layer by layer, keeping the storage that captured CUDA graphs read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from holdfast_worker.operation import BadDataError
from holdfast_worker.rank.rendezvous import bind_stores_of_libraries
from holdfast_worker.sampler.publication import read_tensors
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import Publication

bind_stores_of_libraries()  # Each of vLLM's workers imports this before it joins its group.


class PublicationExtension:
    """
    A base class that vLLM adds to its worker, so none of its names may be one of the worker's.
    """

    model_runner: Any
    reload_weights: Callable[..., None]

    def holdfast_replace(self, publication: Mapping[str, object]) -> int:
        """
        Replaces all weights by a publication's and returns how many tensors were handed over,
        hashes checked.
        """
        sent = decode(Publication, publication)
        model = self.model_runner.get_model()
        expected = {name for name, _ in model.named_parameters()}
        handed: list[str] = []
        loaded = self._publication_reload(model, self._publication_tensors(sent, handed))
        missing = expected - loaded if loaded is not None else set()
        if missing:
            raise BadDataError(
                f"Cannot load publication '{sent.dir}' "
                f"because it has nothing for the model's '{min(missing)}' "
                f"({len(missing)} such)"
            )
        if len(handed) != len(sent.tensors):
            raise BadDataError(
                f"Cannot load publication '{sent.dir}' because vLLM took {len(handed)} of its "
                f"{len(sent.tensors)} tensors"
            )
        self._publication_repack(model)
        return len(handed)

    def _publication_tensors(
        self, publication: Publication, handed: list[str]
    ) -> Iterator[tuple[str, Any]]:
        for name, tensor in read_tensors(publication):
            handed.append(name)
            yield name, tensor

    def _publication_reload(
        self, model: Any, tensors: Iterator[tuple[str, Any]]
    ) -> set[str] | None:
        """vLLM's own reload. It only warns about parameters that received nothing, so the loaded
        names are captured here.
        """
        loaded: list[set[str] | None] = []
        load_weights = model.load_weights

        def recording(weights: Any) -> Any:
            loaded.append(load_weights(weights))
            return loaded[-1]

        model.load_weights = recording
        try:
            self.reload_weights(weights_iterator=tensors)
        finally:
            del model.load_weights
        return loaded[0]

    def _publication_repack(self, model: Any) -> None:
        """
        On CPU a tied head computes from a packed copy that vLLM 0.32's reload leaves stale;
        elsewhere a no-op.
        """
        from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

        for module in model.modules():
            if isinstance(module, VocabParallelEmbedding):
                module.quant_method.process_weights_after_loading(module)
