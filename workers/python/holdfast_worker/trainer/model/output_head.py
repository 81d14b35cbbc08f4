"""
What comes after a model's last hidden state: log-probabilities and entropy, whole or chunk by
chunk.

Chunk by chunk, no tensor of tokens x vocabulary lives longer than its chunk: the output head runs
inside one autograd function that keeps hidden states only and computes each chunk's logits again in
the backward. It replaces the head's `forward` during the model's own call, so every rank still
calls the head once: ZeRO-3 gathers and frees its weights as usual, regardless of each rank's number
of chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from holdfast_worker.operation import BadDataError

ModelInputs = Mapping[str, object]  # Its arguments by name: token ids [B, T], and how they meet.


def target_values(
    logits: Tensor, targets: Tensor, *, temperature: float, entropy: bool
) -> tuple[Tensor, ...]:
    """`logp` and, if requested, `entropy` of targets [N] under logits [N, V], in float32."""
    logits = logits.float()
    if temperature != 1.0:
        logits = logits / temperature
    if not entropy:
        return (-functional.cross_entropy(logits, targets, reduction="none"),)
    log_probabilities = logits.log_softmax(-1)
    logp = -functional.nll_loss(log_probabilities, targets, reduction="none")
    return logp, -(log_probabilities.exp() * log_probabilities).sum(-1)


def values_in_chunks(
    model: Any,
    inputs: ModelInputs,
    targets: Tensor,
    *,
    chunk: int,
    temperature: float,
    entropy: bool,
) -> list[Tensor]:
    """
    `target_values` of targets [B, K], each [B, K], with at most `chunk` tokens of logits at a time.
    """
    computed: list[Tensor] = []

    def forward(project: Callable[[Tensor], Tensor], hidden: Tensor) -> Tensor:
        def piece(states: Tensor, wanted: Tensor) -> Tensor:
            values = target_values(
                project(states), wanted, temperature=temperature, entropy=entropy
            )
            return torch.stack(values, dim=-1)

        parameters = tuple(model.get_output_embeddings().parameters())
        values = _InChunks.apply(piece, chunk, hidden.flatten(0, 1), targets.flatten(), *parameters)
        computed.append(values.detach())
        return values.unflatten(0, targets.shape)

    with replaced_head(model, forward):
        values = model(
            **inputs
        ).logits  # [B, K, 1 or 2]: not logits but what the replaced head made of them.
    if len(computed) != 1 or not _equal(values.detach().flatten(0, 1), computed[0]):
        raise BadDataError(
            "Cannot compute logits in chunks because this model scales or caps them after its "
            "output head. Set "
            "trainer.logits_chunk_tokens: null, and bound memory by trainer.micro_batch_tokens_max"
        )
    return list(values.unbind(-1))


@contextmanager
def replaced_head(
    model: Any, forward: Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]
) -> Generator[None]:
    """
    While it lasts, the output head of `model` answers `forward(its own forward, hidden states)`.
    """
    head = model.get_output_embeddings()
    original, instance = head.forward, head.__dict__.get("forward")
    head.forward = lambda hidden: forward(original, hidden)
    try:
        yield
    finally:
        if instance is None:
            del head.forward
        else:
            head.forward = instance


def _equal(left: Tensor, right: Tensor) -> bool:
    """Also true if both are not a number."""
    same = left.shape == right.shape and left.dtype == right.dtype
    return same and bool(((left == right) | (left.isnan() & right.isnan())).all())


class _InChunks(torch.autograd.Function):
    """
    `piece(hidden [n, H], targets [n]) -> [n, C]` over chunks of N rows. `piece` reads `parameters`
    by itself.
    """

    @staticmethod
    def forward(
        ctx: Any, piece: Callable, chunk: int, hidden: Tensor, targets: Tensor, *parameters: Tensor
    ) -> Tensor:
        ctx.piece, ctx.chunk, ctx.parameters = piece, chunk, parameters
        ctx.save_for_backward(hidden, targets)
        return torch.cat([piece(*part) for part in zip(hidden.split(chunk), targets.split(chunk))])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        hidden, targets = ctx.saved_tensors
        trained = [parameter for parameter in ctx.parameters if parameter.requires_grad]
        # In float32 at least: a sum over chunks in bfloat16 would lose what one product over all
        # tokens keeps.
        sums = [
            torch.zeros_like(p, dtype=torch.promote_types(p.dtype, torch.float32)) for p in trained
        ]
        parts = []
        for part in zip(
            hidden.split(ctx.chunk), targets.split(ctx.chunk), gradient.split(ctx.chunk)
        ):
            of_hidden, *others = _gradients(ctx.piece, part, trained)
            parts.append(of_hidden)
            for total, other in zip(sums, others):
                total.add_(other)
        whole = {id(p): total.to(p.dtype) for p, total in zip(trained, sums)}
        return (
            None,
            None,
            torch.cat(parts),
            None,
            *(whole.get(id(parameter)) for parameter in ctx.parameters),
        )


def _gradients(
    piece: Callable, part: tuple[Tensor, Tensor, Tensor], trained: list[Tensor]
) -> tuple[Tensor, ...]:
    states, wanted, gradient = part
    with torch.enable_grad():
        states = states.detach().requires_grad_()
        values = piece(states, wanted)
    return torch.autograd.grad(values, [states, *trained], gradient)
