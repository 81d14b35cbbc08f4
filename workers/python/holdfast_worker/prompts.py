"""
From prompts and completions to token ids. The only place where training tokens are made from text.

A prompt is plain text or a list of chat messages `{"role", "content"}` (`data/prompt.ts`). Text is
encoded as it is, with the special tokens that the tokenizer itself puts in front (Llama's
begin-of-sequence); if the text begins with them, or a completion ends with the end-of-sequence
token, they are not added again. Messages are rendered by the model's chat template, which writes its own special
tokens.

`chat` is the record of how messages are rendered (`data/chat.ts`). Created models and those with
`turn_end: eos_token` have None: their assistant turns are the content and the tokenizer's
end-of-sequence token, whatever the template writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast_worker.chat import ChatFormat, Turn
from holdfast_worker.message import whole_message
from holdfast_worker.opened_thought import THOUGHTS
from holdfast_worker.operation import BadDataError

Turns = Sequence[Mapping[str, Any]]
Prompt = str | Turns
Chat = Mapping[str, Any] | None
Encoded = tuple[list[int], list[int]]  # Tokens [T] and mask [T].


def encode_prompt(
    tokenizer: Any, prompt: Prompt, chat: Chat = None, *, tools: str | None = None
) -> tuple[str, list[int]]:
    """The text that the model sees, and its tokens, up to the first sampled token."""
    if isinstance(prompt, str):
        text, tokens = prompt, _encode_opening(tokenizer, prompt)
    else:
        text = chat_format(tokenizer, chat, tools).prompt(prompt)
        tokens = _encode(tokenizer, text)
    if not tokens:
        raise BadDataError(
            f"Cannot encode a prompt because it has no tokens: current value is {prompt!r}"
        )
    return text, tokens


def encode_supervised(
    tokenizer: Any,
    prompt: Prompt,
    completion: Prompt,
    chat: Chat = None,
    *,
    tools: str | None = None,
) -> Encoded:
    """
    Tokens and mask of a row with one sequence: the mask is 1 on the tokens that the model would
    have sampled.
    """
    sequences = encode_rows(tokenizer, prompt, completion, chat, tools=tools)
    if len(sequences) > 1:
        raise BadDataError(
            "Cannot encode a chat with several assistant turns as one sequence because the chat "
            "template does not keep earlier "
            "turns as they were taught: give each assistant turn a separate row, which ends with it"
        )
    return sequences[0]


def encode_rows(
    tokenizer: Any,
    prompt: Prompt,
    completion: Prompt,
    chat: Chat = None,
    *,
    tools: str | None = None,
) -> list[Encoded]:
    """
    The sequences of a supervised row: one, or one per assistant turn if the chat template does
    not keep earlier turns (because it drops thoughts, say), each after the text that the model sees
    there. Prompt and completion meet at the first sampled token: no token spans the border.
    """
    if not isinstance(prompt, str) and chat is not None:
        messages = [*prompt, *_messages(completion)]
        form = chat_format(tokenizer, chat, tools)
        return _encode_chat(form, messages, first=len(prompt))
    if prompt == "":
        return [_encode_whole(tokenizer, completion)]
    if isinstance(completion, str):
        tokens = encode_prompt(tokenizer, prompt, chat, tools=tools)[1]
        taught = _ended(tokenizer, _encode(tokenizer, completion))
        return [(tokens + taught, [0] * len(tokens) + [1] * len(taught))]
    if isinstance(prompt, str):
        return encode_rows(tokenizer, prompt, _joined(completion), chat)
    return [_encode_turns(ChatFormat(tokenizer, tools=tools), prompt, completion)]


def end_token(tokenizer: Any) -> int:
    """The end-of-sequence token's id."""
    if tokenizer.eos_token_id is None:
        raise BadDataError(
            "Cannot end a sequence because the tokenizer has no end-of-sequence token: set `eos_token` in "
            "tokenizer_config.json"
        )
    return int(tokenizer.eos_token_id)


def turn_end(tokenizer: Any, prompt: Prompt, chat: Chat) -> int:
    """The token that ends the model's answer to this prompt."""
    if isinstance(prompt, str) or chat is None:
        return end_token(tokenizer)
    end = chat_format(tokenizer, chat).end
    return end_token(tokenizer) if end is None else end[1]


def chat_format(tokenizer: Any, chat: Chat, tools: str | None = None) -> ChatFormat:
    options = chat or {}
    return ChatFormat(
        tokenizer, options.get("template_arguments"), tools=tools, date=options.get("date")
    )


def refuse_ignored(
    tokenizer: Any,
    prompt: Prompt,
    completion: Prompt = (),
    chat: Chat = None,
    *,
    tools: str | None = None,
) -> None:
    """Refuses what a row has and the chat template does not write, or would write again."""
    if isinstance(prompt, str):
        return
    messages = [*prompt, *_messages(completion)]
    form = chat_format(tokenizer, chat, tools)
    form.refuse_rendered(messages)
    form.refuse_ignored(messages, len(prompt))


def _encode_whole(tokenizer: Any, completion: Prompt) -> Encoded:
    """
    All of a text is trained but what the tokenizer puts in front; without that, all but the first
    token, which nothing comes before.
    """
    text = completion if isinstance(completion, str) else _joined(completion)
    tokens = _ended(tokenizer, _encode_opening(tokenizer, text))
    opening = _encode_opening(tokenizer, "")
    context = max(1, len(opening)) if tokens[: len(opening)] == opening else 1
    if context >= len(tokens):
        raise BadDataError(
            f"Cannot teach a whole text because nothing follows its first token: it is {text!r}"
        )
    return tokens, [0] * context + [1] * (len(tokens) - context)


def _encode_chat(
    form: ChatFormat, messages: Sequence[Mapping[str, Any]], *, first: int
) -> list[Encoded]:
    """
    Every assistant turn of the completion is trained; everything before and between is context.
    """
    turns = form.turns(messages, first)
    if not turns:
        raise _nothing_taught()
    sequences: list[Encoded] = []
    seen = None
    for turn in turns:
        # If the template writes no end token, the trained one appears in no later prompt.
        if seen is None or form.end is None or not turn.prompt.startswith(seen):
            sequences.append(([], []))
            seen = ""
        _append(sequences[-1], turn, tokenizer=form.tokenizer, seen=seen, end=form.end)
        seen = turn.prompt + turn.written
    return sequences


def _append(
    sequence: Encoded, turn: Turn, *, tokenizer: Any, seen: str, end: tuple[str, int] | None
) -> None:
    """
    One more turn. `seen`: the text that the sequence has so far, which ends with the turn before.
    """
    before = end[0] if seen and end else ""
    context = turn.prompt[len(seen) :]
    context_tokens = _following(tokenizer, before, context)
    written = _following(tokenizer, context, turn.written)
    if end is None:
        written = _ended(tokenizer, written)
    tokens, mask = sequence
    tokens += context_tokens + written
    mask += [0] * len(context_tokens) + [1] * len(written)


def _following(tokenizer: Any, before: str, text: str) -> list[int]:
    """
    The tokens of a text after another one: some tokenizers add a space at what they consider the
    beginning of a text.
    """
    alone = _encode(tokenizer, before)
    both = _encode(tokenizer, before + text)
    return both[len(alone) :] if both[: len(alone)] == alone else _encode(tokenizer, text)


def _encode_turns(
    form: ChatFormat, prompt: Sequence[Mapping[str, Any]], completion: Sequence[Mapping[str, Any]]
) -> Encoded:
    """
    The form before chats had a record: content and end-of-sequence token, if the template allows
    that.
    """
    tokenizer = form.tokenizer
    messages, seen, end = [*prompt, *completion], "", end_token(tokenizer)
    tokens: list[int] = []
    mask: list[int] = []
    for place in range(len(prompt), len(messages)):
        if messages[place]["role"] != "assistant":
            continue
        _refuse_more_than_text(messages[place], "`turn_end: eos_token` teaches content alone")
        context = form.prompt(messages[:place])
        if not context.startswith(seen):
            raise BadDataError(
                "Cannot encode a chat with several assistant turns because the chat template rewrites earlier turns: "
                f"turn {place} does not start with what came before it"
            )
        before = _encode(tokenizer, context[len(seen) :])
        taught = [*_encode(tokenizer, messages[place]["content"]), end]
        tokens += before + taught
        mask += [0] * len(before) + [1] * len(taught)
        seen = context + messages[place]["content"] + tokenizer.eos_token
    if not mask:
        raise _nothing_taught()
    return tokens, mask


def _nothing_taught() -> BadDataError:
    return BadDataError(
        "Cannot encode a supervised row because its completion has no message of role 'assistant'"
    )


def _messages(completion: Prompt) -> Sequence[Mapping[str, Any]]:
    return (
        [{"role": "assistant", "content": completion}]
        if isinstance(completion, str)
        else completion
    )


def _joined(completion: Sequence[Mapping[str, Any]]) -> str:
    if len(completion) != 1:
        raise BadDataError(
            f"Cannot encode a supervised row because its prompt is plain text and its completion has {len(completion)} "
            "messages: give the prompt as messages too"
        )
    _refuse_more_than_text(completion[0], "a plain-text prompt has no chat template")
    return completion[0]["content"]


def _refuse_more_than_text(message: Mapping[str, Any], why: str) -> None:
    whole = whole_message(message)
    more = [name for name in ("tool_calls", *THOUGHTS) if whole.get(name)]
    if more:
        raise BadDataError(
            f"Cannot teach {' and '.join(more)} of a message because {why}: give the prompt as messages, and "
            "leave model.turn_end at its default"
        )


def _encode(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


def _encode_opening(tokenizer: Any, text: str) -> list[int]:
    """
    With the special tokens that the tokenizer itself puts in front, unless the text begins with
    them already; without an end-of-sequence token that some tokenizers append.
    """
    tokens = list(tokenizer.encode(text))
    plain = _encode(tokenizer, text)
    places = range(len(tokens) - len(plain) + 1) if plain else ()
    start = next((at for at in places if tokens[at : at + len(plain)] == plain), None)
    if start is None:  # Added tokens changed the text's own, as a space at its beginning.
        ends_by_itself = plain and plain[-1] == tokenizer.eos_token_id
        appended = tokens and tokens[-1] == tokenizer.eos_token_id and not ends_by_itself
        return tokens[:-1] if appended else tokens
    added = tokens[:start]
    return plain if plain[:start] == added else [*added, *plain]


def _ended(tokenizer: Any, tokens: list[int]) -> list[int]:
    """With an end-of-sequence token, unless the text has one at its end already."""
    end = end_token(tokenizer)
    return tokens if tokens and tokens[-1] == end else [*tokens, end]
