"""The Hugging Face engine: it opens models, replaces and probes weights, and samples a slab by
pieces.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from holdfast_worker.gpu_memory import drop_garbage, give_back
from holdfast_worker.model_opening import Opening
from holdfast_worker.operation import BadDataError
from holdfast_worker.sampler.adapters import tensors_by_file_name, with_adapter
from holdfast_worker.sampler.engine import EngineInfo, Watch
from holdfast_worker.sampler.piece import How, Piece
from holdfast_worker.sampler.publication import read_tensors
from holdfast_worker.sampler.slab import Completion, SampleRequest
from holdfast_worker.sampler.stopping import end_tokens, ending_tokens
from holdfast_worker.weights import Tensors
from holdfast_worker.wire.types import Publication, SamplerSpec, Sampling

if TYPE_CHECKING:
    import torch

ROWS_MAX = 512  # Rows of one batch; longer slabs are sampled piece by piece, in order.
NOISE_STD = 0.02


class HuggingFaceEngine:
    """See `engine.Engine`."""

    def __init__(self, spec: SamplerSpec) -> None:
        self.spec = spec
        self.opening = Opening.of(spec)
        self.model: Any = None
        self.decoder: Any = None  # None: every token goes through the model's own forward.
        self.tokenizer: Any = None
        self.base: str | None = (
            None  # The model beside which publications are adapters; None: they are whole models.
        )
        self.vocabulary = 0
        self.length_max = 0
        self.repeats = "bits"
        self.cold_tolerance = 0.0  # The same kernels in the same process.

    def boot(self) -> EngineInfo:
        # Wanted by deterministic matrix products on CUDA; has to be there before the first one.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        import torch
        import transformers

        # Their imports are part of the start.
        from holdfast_worker.sampler import choosing, decoding, growing_cache  # noqa: F401
        from holdfast_worker.sampler.grouped_attention import read_groups_in_place

        wanted = self.spec.device
        if wanted == "cuda" and not torch.cuda.is_available():
            raise RuntimeError(
                f"Cannot use sampler.device cuda because torch {torch.__version__} sees no GPU: "
                "set sampler.device to cpu, or install a CUDA build of torch"
            )
        self.device = (
            ("cuda" if torch.cuda.is_available() else "cpu") if wanted == "auto" else wanted
        )
        read_groups_in_place()
        torch.set_num_threads(self.spec.threads)
        # Sums over the vocabulary have no deterministic kernel on CUDA: there it warns, and bits
        # are not promised.
        torch.use_deterministic_algorithms(True, warn_only=self.device != "cpu")
        # Off: it would write NaN into the cache's spare room, a fifth of a short slab's time.
        # Nothing reads that room.
        torch.utils.deterministic.fill_uninitialized_memory = False
        self.repeats = "bits" if self.device == "cpu" else "no"
        self.dtype = getattr(torch, self.spec.dtype)
        return {
            "device": self.device,
            "packages": {"torch": torch.__version__, "transformers": transformers.__version__},
        }

    def open_noise(self, model_path: str) -> None:
        import torch
        from transformers import AutoModelForCausalLM, initialization

        self.model = self.decoder = self.base = None  # Frees the old model first.
        self._read(model_path)
        # transformers' own initialisation, on one core of the CPU, would be replaced by the noise.
        with cast(Any, initialization).no_init_weights():  # It has no types.
            model = cast(Any, AutoModelForCausalLM).from_config(
                self.config, dtype=self.dtype, **self.opening.building()
            )
        model.tie_weights()  # Left out with the initialisation.
        model = model.to(self.device).eval()
        generator = torch.Generator(self.device).manual_seed(self.spec.seed % 2**63)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(0, NOISE_STD, generator=generator)
        self._adopt(model, model_path)

    def open_adapter(self, publication: Publication) -> None:
        import torch

        self.model = self.decoder = None  # Frees the old model first.
        assert publication.base
        base = publication.base.dir
        self._read(base)
        generator = torch.Generator().manual_seed(self.spec.seed % 2**63)
        model = self.opening.language_model(base, dtype=self.dtype)
        with torch.no_grad():
            adapted = with_adapter(
                model,
                publication.dir,
                noise=lambda tensor: tensor.normal_(0, NOISE_STD, generator=generator),
            )
        self._adopt(adapted.to(self.device), base)
        self.base = base

    def _read(self, directory: str) -> None:
        from transformers import AutoConfig, AutoTokenizer

        self.config = AutoConfig.from_pretrained(directory, **self.opening.reading())
        self.tokenizer = AutoTokenizer.from_pretrained(directory, **self.opening.reading())

    def _adopt(self, model: Any, model_path: str) -> None:
        from holdfast_worker.sampler.decoding import decoder_of

        text_config = self.config.get_text_config(decoder=True)
        self.model = model.requires_grad_(False)
        self.decoder = decoder_of(self.model)
        self.text_config = text_config
        self.ends = end_tokens(self.tokenizer, model_path)
        self.vocabulary = model.get_output_embeddings().weight.shape[0]
        limits = [self.spec.max_model_len, getattr(text_config, "max_position_embeddings", None)]
        self.length_max = min([limit for limit in limits if limit], default=1 << 30)

    def replace(self, publication: Publication) -> int:
        import torch

        tensors = dict(read_tensors(publication))
        state = self._replaced()
        unknown = sorted(set(tensors) - set(state))
        if unknown:
            raise BadDataError(
                f"Cannot load publication '{publication.dir}' because the model has no tensor '{unknown[0]}' "
                f"({len(unknown)} such): it is of another architecture"
            )
        # A tied tensor is written once, under either name.
        written = {state[name].data_ptr() for name in tensors}
        missing = [name for name, tensor in state.items() if tensor.data_ptr() not in written]
        if missing:
            raise BadDataError(
                f"Cannot load publication '{publication.dir}' because it lacks tensor '{missing[0]}' "
                f"({len(missing)} such)"
            )
        with torch.no_grad():
            for name, tensor in tensors.items():
                self._copy(state[name], tensor)
        return len(tensors)

    def _replaced(self) -> Tensors:
        """
        What a publication replaces, by the names in its files: the whole model, or the adapter in
        it.
        """
        if self.base is None:
            return self.model.state_dict(keep_vars=True)
        return tensors_by_file_name(self.model)

    def _copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """
        Into the storage that the kernels read. Its own method, so that a test can leave a tensor
        stale.
        """
        if target.shape != source.shape:
            raise BadDataError(
                f"Cannot load a tensor of shape {tuple(source.shape)} into one of {tuple(target.shape)}"
            )
        target.data.copy_(source)

    def probe(self, sequences: Sequence[Sequence[int]]) -> np.ndarray:
        return self._probe(self.model, sequences)

    def _probe(self, model: Any, sequences: Sequence[Sequence[int]]) -> np.ndarray:
        import torch

        with torch.inference_mode():
            tokens = torch.tensor([list(sequence) for sequence in sequences], device=self.device)
            logits = model(input_ids=tokens, use_cache=False).logits[:, :-1]
            logp = torch.log_softmax(logits.float(), dim=-1)
            return logp.gather(-1, tokens[:, 1:, None]).flatten().cpu().numpy()

    def cold_probe(self, directory: str, sequences: Sequence[Sequence[int]]) -> np.ndarray:
        model = self.opening.language_model(self.base or directory, dtype=self.dtype)
        if self.base is not None:
            model = with_adapter(model, directory)
        model = model.to(self.device).eval()
        try:
            return self._probe(model, sequences)
        finally:
            del model
            drop_garbage(self.device)

    def sample(
        self,
        requests: Sequence[SampleRequest],
        sampling: Sampling,
        *,
        seed: int,
        watch: Watch,
        ends: frozenset[int] = frozenset(),
    ) -> list[Completion]:
        import torch

        pieces = [
            list(requests[start : start + ROWS_MAX]) for start in range(0, len(requests), ROWS_MAX)
        ]
        how = How(sampling, seed, watch, ending_tokens(self.ends | ends, sampling))
        try:
            with torch.inference_mode():
                return [
                    completion for piece in pieces for completion in Piece(self, piece, how).run()
                ]
        finally:
            give_back(self.device)

    def close(self) -> None:
        self.model = self.decoder = None
