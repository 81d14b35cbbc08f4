"""From prompts and completions to token ids. The only place where training tokens are made from text.

A prompt is plain text or a list of chat messages `{"role", "content"}` (`data/prompt.ts`). Text is encoded as it is,
with the special tokens that the tokenizer itself puts in front (Llama's begin-of-sequence). Messages are rendered by
the model's chat template, which writes its own special tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast_worker.operation import BadDataError

Prompt = str | Sequence[dict[str, Any]]


def encode_prompt(tokenizer: Any, prompt: Prompt) -> tuple[str, list[int]]:
    """The text that the model is shown, and its tokens, ready for the first sampled token to follow."""
    if isinstance(prompt, str):
        text, tokens = prompt, _encode_opening(tokenizer, prompt)
    else:
        text = _render(tokenizer, prompt)
        tokens = _encode(tokenizer, text)
    if not tokens:
        raise BadDataError(f"Cannot encode a prompt as it has no tokens: current value is {prompt!r}")
    return text, tokens


def encode_supervised(tokenizer: Any, prompt: Prompt, completion: Prompt) -> tuple[list[int], list[int]]:
    """Tokens [T] and mask [T] of a supervised row: the mask is 1 on what the model would have sampled.

    Each assistant turn is its content followed by the end-of-sequence token, as a sampler would have recorded it:
    prompt and completion are encoded apart, so that no token spans the border.
    """
    end = end_token(tokenizer)
    if isinstance(completion, str):
        tokens = encode_prompt(tokenizer, prompt)[1]
        taught = [*_encode(tokenizer, completion), end]
        return tokens + taught, [0] * len(tokens) + [1] * len(taught)
    if isinstance(prompt, str):
        return encode_supervised(tokenizer, prompt, _joined(completion))
    return _encode_turns(tokenizer, prompt, {"completion": completion, "end": end})


def end_token(tokenizer: Any) -> int:
    """The end-of-sequence token's id."""
    if tokenizer.eos_token_id is None:
        raise BadDataError(
            "Cannot end a sequence as the tokenizer has no end-of-sequence token: set `eos_token` in "
            "tokenizer_config.json"
        )
    return int(tokenizer.eos_token_id)


def _encode_turns(tokenizer: Any, prompt: Sequence[dict], parts: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Every assistant turn of the completion is taught; what other roles say in between is context."""
    completion, end = parts["completion"], parts["end"]
    messages, seen = [*prompt, *completion], ""
    tokens: list[int] = []
    mask: list[int] = []
    for place in range(len(prompt), len(messages)):
        if messages[place]["role"] != "assistant":
            continue
        context = _render(tokenizer, messages[:place])
        if not context.startswith(seen):
            raise BadDataError(
                "Cannot encode a chat with several assistant turns as the chat template rewrites earlier turns: "
                f"turn {place} does not start with what came before it"
            )
        before = _encode(tokenizer, context[len(seen) :])
        taught = [*_encode(tokenizer, messages[place]["content"]), end]
        tokens += before + taught
        mask += [0] * len(before) + [1] * len(taught)
        seen = context + messages[place]["content"] + tokenizer.eos_token
    if not mask:
        raise BadDataError("Cannot encode a supervised row as its completion has no message of role 'assistant'")
    return tokens, mask


def _joined(completion: Sequence[dict]) -> str:
    if len(completion) != 1:
        raise BadDataError(
            f"Cannot encode a supervised row as its prompt is plain text and its completion has {len(completion)} "
            "messages: give the prompt as messages too"
        )
    return completion[0]["content"]


def _render(tokenizer: Any, messages: Sequence[dict]) -> str:
    if not getattr(tokenizer, "chat_template", None):
        raise BadDataError(
            "Cannot render chat messages as the model's tokenizer has no chat template: use plain-text prompts or a "
            "chat model"
        )
    return tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)


def _encode(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


def _encode_opening(tokenizer: Any, text: str) -> list[int]:
    """With the tokenizer's own opening token, without an end-of-sequence token that some tokenizers append."""
    tokens = list(tokenizer.encode(text))
    plain = _encode(tokenizer, text)
    ends_by_itself = plain and plain[-1] == tokenizer.eos_token_id
    if tokens and tokens[-1] == tokenizer.eos_token_id and not ends_by_itself:
        tokens.pop()
    return tokens
