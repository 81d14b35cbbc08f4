"""The Hugging Face engine: its own batched sampling loop, one forward for each token of the whole
slab.

Rows leave the batch only when at most half of it still continues, which depends only on the slab's
content: the same slab is cut the same way in every process, so its bits repeat.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast_worker.gpu_memory import drop_garbage, give_back
from holdfast_worker.operation import BadDataError
from holdfast_worker.sampler.adapters import tensors_by_file_name, with_adapter
from holdfast_worker.sampler.engine import Watch
from holdfast_worker.sampler.publication import read_tensors
from holdfast_worker.sampler.randomness import uniforms
from holdfast_worker.sampler.slab import Completion, SampleRequest
from holdfast_worker.sampler.stopping import Ending, end_tokens
from holdfast_worker.wire_types import Publication, SamplerSpec

if TYPE_CHECKING:
    import torch

ROWS_MAX = 512  # Rows of one batch; longer slabs are sampled piece by piece, in order.
NOISE_STD = 0.02


@dataclass
class _Batch:
    """The rows that are still in the batch. `places`: [B] their places among all rows of the piece."""

    places: torch.Tensor
    cache: Any
    mask: torch.Tensor | None  # [B, T] 1 on real tokens; None where no row is padded.
    lengths: torch.Tensor  # [B] real tokens so far.


class HuggingFaceEngine:
    """See `engine.Engine`."""

    def __init__(self, spec: SamplerSpec) -> None:
        self.spec = spec
        self.model: Any = None
        self.decoder: Any = None  # None: every token goes through the model's own forward.
        self.tokenizer: Any = None
        self.base: str | None = None  # The model beside which publications are adapters; None: they are whole models.
        self.vocabulary = 0
        self.length_max = 0
        self.repeats = "bits"
        self.cold_tolerance = 0.0  # The same kernels in the same process.

    def boot(self) -> dict[str, Any]:
        # Wanted by deterministic matrix products on CUDA; has to be there before the first one.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        import torch
        import transformers

        # Their imports are part of the start.
        from holdfast_worker.sampler import choosing, decoding, growing_cache  # noqa: F401

        wanted = self.spec.device
        if wanted == "cuda" and not torch.cuda.is_available():
            raise RuntimeError(
                f"Cannot use sampler.device cuda because torch {torch.__version__} sees no GPU: "
                "set sampler.device to cpu, or install a CUDA build of torch"
            )
        self.device = ("cuda" if torch.cuda.is_available() else "cpu") if wanted == "auto" else wanted
        torch.set_num_threads(self.spec.threads)
        # Sums over the vocabulary have no deterministic kernel on CUDA: there it warns, and bits are not promised.
        torch.use_deterministic_algorithms(True, warn_only=self.device != "cpu")
        # Off: it would write NaN into the cache's spare room, a fifth of a short slab's time. Nothing reads that room.
        torch.utils.deterministic.fill_uninitialized_memory = False
        self.repeats = "bits" if self.device == "cpu" else "no"
        self.dtype = getattr(torch, self.spec.dtype)
        return {
            "device": self.device,
            "packages": {"torch": torch.__version__, "transformers": transformers.__version__},
        }

    def open_noise(self, model_path: str) -> None:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

        self.model = self.decoder = self.base = None  # The old model goes before the new one comes.
        self.config = AutoConfig.from_pretrained(model_path)
        self.tokenizer = AutoTokenizer.from_pretrained(model_path)
        model = AutoModelForCausalLM.from_config(self.config, dtype=self.dtype).to(self.device).eval()
        generator = torch.Generator(self.device).manual_seed(self.spec.seed % 2**63)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(0, NOISE_STD, generator=generator)
        self._adopt(model, model_path)

    def open_adapter(self, publication: Publication) -> None:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

        self.model = self.decoder = None  # The old model goes before the new one comes.
        assert "base" in publication
        base = publication["base"]["dir"]
        self.config = AutoConfig.from_pretrained(base)
        self.tokenizer = AutoTokenizer.from_pretrained(base)
        generator = torch.Generator().manual_seed(self.spec.seed % 2**63)
        model = AutoModelForCausalLM.from_pretrained(base, dtype=self.dtype)
        with torch.no_grad():
            adapted = with_adapter(
                model, publication["dir"], noise=lambda tensor: tensor.normal_(0, NOISE_STD, generator=generator)
            )
        self._adopt(adapted.to(self.device), base)
        self.base = base

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
                f"Cannot load publication '{publication['dir']}' because the model has no tensor '{unknown[0]}' "
                f"({len(unknown)} such): it is of another architecture"
            )
        # A tied tensor is written once, under either name.
        written = {state[name].data_ptr() for name in tensors}
        missing = [name for name, tensor in state.items() if tensor.data_ptr() not in written]
        if missing:
            raise BadDataError(
                f"Cannot load publication '{publication['dir']}' because it lacks tensor '{missing[0]}' "
                f"({len(missing)} such)"
            )
        with torch.no_grad():
            for name, tensor in tensors.items():
                self._copy(state[name], tensor)
        return len(tensors)

    def _replaced(self) -> dict[str, Any]:
        """What a publication replaces, by the names in its files: the whole model, or the adapter in it."""
        if self.base is None:
            return self.model.state_dict(keep_vars=True)
        return tensors_by_file_name(self.model)

    def _copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """Into the storage that the kernels read. Its own method, so that a test can leave a tensor stale."""
        if target.shape != source.shape:
            raise BadDataError(f"Cannot load a tensor of shape {tuple(source.shape)} into one of {tuple(target.shape)}")
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
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(self.base or directory, dtype=self.dtype)
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
        sampling: dict[str, Any],
        *,
        seed: int,
        watch: Watch,
        ends: frozenset[int] = frozenset(),
    ) -> list[Completion]:
        import torch

        pieces = [list(requests[start : start + ROWS_MAX]) for start in range(0, len(requests), ROWS_MAX)]
        how = {"sampling": sampling, "seed": seed, "watch": watch, "ends": self.ends | ends}
        try:
            with torch.inference_mode():
                return [completion for piece in pieces for completion in _Piece(self, piece, how).run()]
        finally:
            give_back(self.device)

    def close(self) -> None:
        self.model = self.decoder = None


class _Piece:
    """One batch from prompts to completions. R rows in all, B of them still in the batch."""

    def __init__(self, engine: HuggingFaceEngine, requests: list[SampleRequest], how: dict[str, Any]) -> None:
        import torch

        self.engine, self.requests = engine, requests
        self.sampling, self.watch = how["sampling"], how["watch"]
        self.seed = how["seed"]
        self.rows = [(request.draw, request.sample) for request in requests]
        self.ending = Ending(engine.tokenizer, how["ends"], self.sampling["stop"])
        prompt_lengths = torch.tensor([len(request.prompt) for request in requests])
        self.limits = (engine.length_max - prompt_lengths).clamp(max=self.sampling["tokens_max"])  # [R]
        self.steps = int(self.limits.max())
        self.tokens = torch.zeros((len(requests), self.steps), dtype=torch.int64)
        self.logp = torch.zeros((len(requests), self.steps), dtype=torch.float32)
        self.counts = torch.zeros(len(requests), dtype=torch.int64)  # [R] tokens of each completion
        self.stopped = torch.zeros(len(requests), dtype=torch.bool)
        self.ends = torch.zeros(engine.vocabulary, dtype=torch.bool)
        self.ends[[token for token in how["ends"] if token < engine.vocabulary]] = True

    def run(self) -> list[Completion]:
        import torch

        from holdfast_worker.sampler.choosing import choose

        device = self.engine.device
        uniform = torch.from_numpy(uniforms(self.seed, self.rows, first=0, count=self.steps))
        going = torch.ones(len(self.rows), dtype=torch.bool)
        logits, batch = self._prefill()
        for step in range(self.steps):
            self.watch.check()
            numbers = uniform[batch.places, step].to(device)
            chosen, logp = choose(logits, numbers, self.sampling)
            self._record(step, {"chosen": chosen.cpu(), "logp": logp.cpu(), "going": going, "batch": batch})
            left = int(going.sum())
            self.watch.progress(int(self.counts.sum()), int(self.limits.sum()))
            if left == 0:
                break
            if 2 * left <= len(batch.places):
                keep = going[batch.places]
                chosen = chosen[keep.to(device)]
                self._drop(batch, keep)
            logits = self._forward(batch, chosen)
        return self._completions()

    def _record(self, step: int, now: dict[str, Any]) -> None:
        """Writes one token of every row that continues, and decides which of them it ends."""
        places, going, chosen = now["batch"].places, now["going"], now["chosen"]
        active = going[places]
        rows, tokens = places[active], chosen[active]
        self.tokens[rows, step] = tokens
        self.logp[rows, step] = now["logp"][active]
        self.counts[rows] = step + 1
        stopped = self.ends[tokens]
        if self.ending.stop:
            for place in (~stopped).nonzero().flatten().tolist():
                stopped[place] = self.ending.hits_stop(self.tokens[rows[place], : step + 1].tolist())
        self.stopped[rows] = stopped
        going[rows] = ~stopped & (step + 1 < self.limits[rows])

    def _prefill(self) -> tuple[Any, _Batch]:
        """The first logits [R, V]. A prompt shared by neighbours is computed once, its keys and values are repeated."""
        import torch

        from holdfast_worker.sampler.growing_cache import new_cache, positions

        device = self.engine.device
        prompts, repeats = _runs([request.prompt for request in self.requests])
        width = max(map(len, prompts))
        padding = self.engine.tokenizer.pad_token_id or 0
        ids = torch.tensor([[padding] * (width - len(prompt)) + prompt for prompt in prompts], device=device)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
        mask = (torch.arange(width, device=device)[None] >= width - lengths[:, None]).long()
        padded = bool((lengths != width).any())
        cache = new_cache(self.engine.config, self.steps)
        output = self.engine.model(
            input_ids=ids,
            attention_mask=mask if padded else None,
            position_ids=positions(mask),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        rows = torch.repeat_interleave(torch.arange(len(prompts)), torch.tensor(repeats)).to(device)
        if len(rows) != len(prompts):
            cache.batch_select_indices(rows)
        batch = _Batch(torch.arange(len(rows)), cache, mask[rows] if padded else None, lengths[rows])
        return output.logits[rows, -1], batch

    def _forward(self, batch: _Batch, chosen: Any) -> Any:
        import torch

        # Rows that have ended may run past the model's last position: their logits are not used.
        position = batch.lengths.clamp(max=self.engine.length_max - 1)[:, None]
        batch.lengths = batch.lengths + 1
        if batch.mask is not None:
            batch.mask = torch.cat([batch.mask, batch.mask.new_ones((len(chosen), 1))], dim=-1)
        if self.engine.decoder is not None:
            return self.engine.decoder.forward(chosen[:, None], position, batch.cache, batch.mask)
        output = self.engine.model(
            input_ids=chosen[:, None],
            attention_mask=batch.mask,
            position_ids=position,
            past_key_values=batch.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1]

    def _drop(self, batch: _Batch, keep: Any) -> None:
        indices = keep.nonzero().flatten()
        on_device = indices.to(self.engine.device)
        batch.places = batch.places[indices]
        batch.cache.batch_select_indices(on_device)
        batch.mask = None if batch.mask is None else batch.mask[on_device]
        batch.lengths = batch.lengths[on_device]

    def _completions(self) -> list[Completion]:
        tokens, logp = self.tokens.numpy().astype(np.int32), self.logp.numpy()
        counts, stopped = self.counts.tolist(), self.stopped.tolist()
        if not np.isfinite(logp).all():
            row = int(np.argwhere(~np.isfinite(logp))[0, 0])
            raise BadDataError(
                f"Cannot sample draw {self.rows[row][0]} "
                "because the model's logits are not finite: its weights are broken"
            )
        return [
            Completion(
                tokens=tokens[row, :count],
                logp=logp[row, :count],
                stop="stop" if stopped[row] else "length",
                text=self.ending.text(tokens[row, :count].tolist()),
            )
            for row, count in enumerate(counts)
        ]


def _runs(prompts: list[list[int]]) -> tuple[list[list[int]], list[int]]:
    """Equal neighbours, once each, and how often each occurred."""
    found: list[list[int]] = []
    counts: list[int] = []
    for prompt in prompts:
        if found and (found[-1] is prompt or found[-1] == prompt):
            counts[-1] += 1
        else:
            found.append(prompt)
            counts.append(1)
    return found, counts
