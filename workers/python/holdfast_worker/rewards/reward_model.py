"""
A trained reward model as a reward: read once, asked in batches, the same bits for the same samples.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Literal, NotRequired, TypedDict

from holdfast_worker import weights
from holdfast_worker.model_hub.cache import model_directory
from holdfast_worker.operation import BadDataError
from holdfast_worker.prompts import Prompt, encode_prompt, encode_supervised, turn_end
from holdfast_worker.sampler.stopping import decode, end_tokens
from holdfast_worker.trainer import numerics
from holdfast_worker.trainer.model.model_source import ModelSource
from holdfast_worker.wire.answers import ScoredItem
from holdfast_worker.wire.types import RewardModelSettings

SEED = 0  # For anything that torch draws by itself.


class ModelSample(TypedDict):
    """What a reward model is asked about. `token_ids`: those that the policy sampled."""

    id: str
    prompt: Prompt
    tools: NotRequired[str]
    completion: str
    token_ids: NotRequired[list[int]]


class RewardModel:
    """The model of a directory that ends in one number. A sample is encoded like the rows that the
    model was trained on: the prompt by the model's chat template, the completion, and the token
    that ends it, at which the score is read.
    """

    def __init__(self, settings: RewardModelSettings) -> None:
        path = str(model_directory(settings.path))
        numerics.prepare_environment(settings.threads)
        self.device = numerics.choose_device(settings.device, 0)
        numerics.make_deterministic(self.device, threads=settings.threads, seed=SEED)
        source = ModelSource(path, head="score")
        require_head(path)
        self.tokenizer = source.tokenizer
        ends_by_template = settings.turn_end == "template"
        self.chat = (
            {"template_arguments": settings.template_arguments} if ends_by_template else None
        )
        self.ends = end_tokens(self.tokenizer, path)
        self.model = source.open_model(settings.dtype).to(self.device).eval().requires_grad_(False)
        self.tokens_max: int = settings.batch_tokens_max

    def score(
        self, items: Sequence[ModelSample], between: Callable[[int], None] = lambda done: None
    ) -> list[ScoredItem]:
        """
        One result per item, in order. Which samples share a
        batch follows from the items alone. `between(done)` is called after each batch; what it
        raises ends the work.
        """
        from holdfast_worker.trainer.batch import cut

        results: list[ScoredItem | None] = [None] * len(items)
        encoded: dict[int, list[int]] = {}
        for place, item in enumerate(items):
            try:
                encoded[place] = self.encode(item)
            except BadDataError as error:
                results[place] = _result(item, "error", error=str(error))
        places = list(encoded)
        lengths = [len(encoded[place]) for place in places]
        batches = cut(lengths, tokens_max=self.tokens_max, world_size=1)[0] if places else []
        for batch in batches:
            chosen = [places[row] for row in batch]
            started = time.perf_counter()
            scores = self._forward([encoded[place] for place in chosen])
            ms = (time.perf_counter() - started) * 1000 / len(chosen)
            for place, score in zip(chosen, scores, strict=True):
                results[place] = _scored(items[place], score, ms)
            between(sum(result is not None for result in results))
        return [result for result in results if result is not None]

    def encode(self, item: ModelSample) -> list[int]:
        """Tokens of a sample. The sampled tokens are used if they spell the completion in this
        vocabulary, as with the policy's own tokenizer; else its text is encoded. A completion that
        was cut ends like any other.
        """
        prompt, text, tools = item["prompt"], item["completion"], item.get("tools")
        end = turn_end(self.tokenizer, prompt, self.chat)
        sampled = self._spelled(item.get("token_ids") or [], text=text, ends=self.ends | {end})
        if sampled is None:
            tokens = encode_supervised(self.tokenizer, prompt, text, self.chat, tools=tools)[0]
        else:
            prompt_tokens = encode_prompt(self.tokenizer, prompt, self.chat, tools=tools)[1]
            tokens = [*prompt_tokens, *sampled, end]
        if len(tokens) > self.tokenizer.model_max_length:
            raise BadDataError(
                f"Cannot score a sample of {len(tokens)} tokens because the reward model has room for "
                f"{self.tokenizer.model_max_length}: lower sampler.tokens_max, or leave long prompts out"
            )
        return tokens

    def _spelled(self, tokens: list[int], *, text: str, ends: frozenset[int]) -> list[int] | None:
        """The tokens without the one that ended them, if they are this text in this vocabulary."""
        kept = tokens[:-1] if tokens and tokens[-1] in ends else tokens
        known = all(0 <= token < len(self.tokenizer) for token in kept)
        return kept if kept and known and decode(self.tokenizer, kept) == text else None

    def _forward(self, rows: list[list[int]]) -> list[float]:
        import torch

        from holdfast_worker.trainer.model.heads import at_last, numbers_after

        width = max(map(len, rows))
        tokens = torch.tensor([row + [0] * (width - len(row)) for row in rows], device=self.device)
        lengths = torch.tensor([len(row) for row in rows], device=self.device)
        present = torch.arange(width, device=self.device) < lengths[:, None]
        with torch.no_grad():
            return at_last(numbers_after(self.model, tokens), present).tolist()


def require_head(path: str) -> None:
    """A language model would get a head of zeros, and every sample the same score."""
    heads = [
        tensor.shape for tensor in weights.locate_tensors(path) if tensor.name == "score.weight"
    ]
    if not heads:
        raise BadDataError(
            f"Cannot score with '{path}' "
            "because it is not a reward model: it has no tensor 'score.weight'. Train one with "
            "`algorithm: reward_model`, and name its export"
        )
    if heads[0][0] != 1:
        raise BadDataError(
            f"Cannot score with '{path}' "
            f"because it outputs {heads[0][0]} numbers per sample: name a model that outputs one"
        )


def _scored(item: ModelSample, score: float, ms: float) -> ScoredItem:
    if math.isfinite(score):
        return _result(item, "ok", score=score, ms=ms)
    return _result(
        item,
        "bad_return",
        error=f"the reward model's score is {score}: expected a finite number",
        ms=ms,
    )


def _result(
    item: ModelSample,
    outcome: Literal["ok", "error", "bad_return"],
    *,
    score: float | None = None,
    error: str | None = None,
    ms: float = 0.0,
) -> ScoredItem:
    return {
        "id": item["id"],
        "outcome": outcome,
        "score": score,
        "metrics": {},
        "error": error,
        "ms": ms,
    }
