"""
The Hugging Face engine's batched sampling loop: one forward for each token of all rows.

Rows leave the batch only when at most half of it still continues, which depends only on the slab's
content: the same slab is cut the same way in every process, so its bits repeat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from holdfast_worker.operation import BadDataError
from holdfast_worker.sampler.engine import Watch
from holdfast_worker.sampler.randomness import uniforms
from holdfast_worker.sampler.slab import Completion, SampleRequest
from holdfast_worker.sampler.stopping import Ending
from holdfast_worker.wire.types import Sampling

if TYPE_CHECKING:
    import torch


class OpenModel(Protocol):
    """What the loop reads of an engine."""

    model: Any
    decoder: Any  # None: every token goes through the model's own forward.
    tokenizer: Any
    config: Any
    device: str
    vocabulary: int
    length_max: int


@dataclass(frozen=True)
class How:
    """What all rows of a slab have in common."""

    sampling: Sampling
    seed: int
    watch: Watch
    ends: frozenset[int]  # Tokens that end a completion.


@dataclass
class _Batch:
    """
    The rows that are still in the batch. `places`: [B] their places among all rows of the piece.
    """

    places: torch.Tensor
    cache: Any
    mask: torch.Tensor | None  # [B, T] 1 on real tokens; None where no row is padded.
    lengths: torch.Tensor  # [B] real tokens so far.


class Piece:
    """One batch from prompts to completions. R rows in all, B of them still in the batch."""

    def __init__(self, engine: OpenModel, requests: list[SampleRequest], how: How) -> None:
        import torch

        self.engine, self.requests = engine, requests
        self.sampling, self.watch, self.seed = how.sampling, how.watch, how.seed
        self.rows = [(request.draw, request.sample) for request in requests]
        self.ending = Ending(engine.tokenizer, how.ends, self.sampling.stop)
        prompt_lengths = torch.tensor([len(request.prompt) for request in requests])
        self.limits = (engine.length_max - prompt_lengths).clamp(
            max=self.sampling.tokens_max
        )  # [R]
        self.steps = int(self.limits.max())
        self.tokens = torch.zeros((len(requests), self.steps), dtype=torch.int64)
        self.logp = torch.zeros((len(requests), self.steps), dtype=torch.float32)
        self.counts = torch.zeros(len(requests), dtype=torch.int64)  # [R] tokens of each completion
        self.stopped = torch.zeros(len(requests), dtype=torch.bool)
        # [R, V] tokens that a row has: only a penalty asks for them.
        self.seen = self._prompt_tokens() if self.sampling.repetition_penalty != 1 else None
        self.ends = torch.zeros(engine.vocabulary, dtype=torch.bool)
        self.ends[[token for token in how.ends if token < engine.vocabulary]] = True

    def run(self) -> list[Completion]:
        import torch

        from holdfast_worker.sampler.choosing import choose

        device = self.engine.device
        uniform = torch.tensor(uniforms(self.seed, self.rows, first=0, count=self.steps))
        going = torch.ones(len(self.rows), dtype=torch.bool)
        logits, batch = self._prefill()
        for step in range(self.steps):
            self.watch.check()
            numbers = uniform[batch.places, step].to(device)
            seen = None if self.seen is None else self.seen[batch.places.to(device)]
            chosen, logp = choose(logits, numbers, self.sampling, seen)
            if self.seen is not None:
                self.seen[batch.places.to(device), chosen] = True
            self._record(step, batch.places, going, chosen=chosen.cpu(), logp=logp.cpu())
            remaining = int(going.sum())
            self.watch.progress(int(self.counts.sum()), int(self.limits.sum()))
            if remaining == 0:
                break
            if 2 * remaining <= len(batch.places):
                keep = going[batch.places]
                chosen = chosen[keep.to(device)]
                self._drop(batch, keep)
            logits = self._forward(batch, chosen)
        return self._completions()

    def _prompt_tokens(self) -> torch.Tensor:
        import torch

        seen = torch.zeros((len(self.requests), self.engine.vocabulary), dtype=torch.bool)
        for row, request in enumerate(self.requests):
            seen[row, request.prompt] = True
        return seen.to(self.engine.device)

    def _record(
        self,
        step: int,
        places: torch.Tensor,
        going: torch.Tensor,
        *,
        chosen: torch.Tensor,
        logp: torch.Tensor,
    ) -> None:
        """
        Writes one token of every row that continues, and decides which of them it ends. `going`:
        [R], of the rest [B].
        """
        active = going[places]
        rows, tokens = places[active], chosen[active]
        self.tokens[rows, step] = tokens
        self.logp[rows, step] = logp[active]
        self.counts[rows] = step + 1
        stopped = self.ends[tokens]
        if self.ending.stop:
            for place in _listed((~stopped).nonzero().flatten()):
                stopped[place] = self.ending.hits_stop(
                    _listed(self.tokens[rows[place], : step + 1])
                )
        self.stopped[rows] = stopped
        going[rows] = ~stopped & (step + 1 < self.limits[rows])

    def _prefill(self) -> tuple[Any, _Batch]:
        """
        The first logits [R, V]. A prompt shared by neighbours is computed once, its keys and values
        are repeated.
        """
        import torch

        from holdfast_worker.sampler.growing_cache import new_cache, positions

        device = self.engine.device
        prompts, repeats = _runs([request.prompt for request in self.requests])
        width = max(map(len, prompts))
        padding = self.engine.tokenizer.pad_token_id or 0
        ids = torch.tensor(
            [[padding] * (width - len(prompt)) + prompt for prompt in prompts], device=device
        )
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
        batch = _Batch(
            torch.arange(len(rows)), cache, mask[rows] if padded else None, lengths[rows]
        )
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
        counts, stopped = _listed(self.counts), _listed(self.stopped)
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


def _listed(tensor: torch.Tensor) -> list[int]:
    return tensor.numpy().tolist()


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
