"""When a completion ends, and the text that it then has: the same for every engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast_worker.prompts import Chat, Prompt, turn_end
from holdfast_worker.wire.types import Sampling


def end_tokens(tokenizer: Any, model_path: str) -> frozenset[int]:
    """The tokens that end a sequence: the tokenizer's, and those of generation_config.json."""
    ends: set[int] = set() if tokenizer.eos_token_id is None else {int(tokenizer.eos_token_id)}
    path = Path(model_path) / "generation_config.json"
    if path.is_file():
        named = json.loads(path.read_text()).get("eos_token_id")
        ends.update([named] if isinstance(named, int) else named or [])
    return frozenset(ends)


def turn_ends(tokenizer: Any, prompts: Sequence[Prompt], chat: Chat) -> frozenset[int]:
    """
    What ends the model's turn in these prompts' chats beside that, by the chat template; empty:
    there are none.
    """
    chats = [prompt for prompt in prompts if not isinstance(prompt, str)]
    return (
        frozenset({turn_end(tokenizer, chats[0], chat)})
        if chats and chat is not None
        else frozenset()
    )


def ending_tokens(ends: frozenset[int], sampling: Sampling) -> frozenset[int]:
    """What ends a completion, by the model's and the chats' `ends` and by configuration."""
    configured = frozenset(sampling.stop_token_ids)
    return configured if sampling.ignore_eos else ends | configured


def decode(tokenizer: Any, tokens: Sequence[int]) -> str:
    """
    Text of tokens, special tokens included, nothing cleaned up: what was sampled is what is shown.
    """
    return tokenizer.decode(
        list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
    )


class Ending:
    """Decides for one model and one set of stop strings."""

    def __init__(self, tokenizer: Any, ends: frozenset[int], stop: Sequence[str]) -> None:
        self.tokenizer = tokenizer
        self.ends = ends
        self.stop = [text for text in stop if text]
        # A token holds at least one byte: these cover any stop string, with room for the bytes of a
        # cut character.
        self.window = max((len(text.encode()) for text in self.stop), default=0) + 8

    def hits_stop(self, tokens: Sequence[int]) -> bool:
        """
        Whether the text of these tokens has a stop string. Looks at the tail first: it runs after
        every token.
        """
        if not self.stop:
            return False
        tail = decode(self.tokenizer, tokens[-self.window :])
        if not any(text in tail for text in self.stop):
            return False
        return any(text in decode(self.tokenizer, tokens) for text in self.stop)

    def text(self, tokens: Sequence[int]) -> str:
        """The completion without the stop token or anything from the first stop string on."""
        kept = tokens[:-1] if len(tokens) and int(tokens[-1]) in self.ends else tokens
        text = decode(self.tokenizer, kept)
        cuts = [place for place in (text.find(stop) for stop in self.stop) if place >= 0]
        return text[: min(cuts)] if cuts else text
