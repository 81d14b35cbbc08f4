"""
A model's chat template as a run uses it: what the model is asked with, and what it then has to
write.

A template is asked twice: for the messages before an assistant's turn, ready for its first token,
and for the conversation up to and with that turn. What the second has after the first is what the
model writes: content and the end of the turn, which is a token of the template's own in many models
(`<end_of_turn>`, `<|im_end|>`), not the tokenizer's end-of-sequence token.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holdfast_worker.message import Message, whole_message
from holdfast_worker.opened_thought import (
    CLOSE,
    THOUGHTS,
    UNENDED,
    Opening,
    opening_of,
    split_thought,
    without_tags,
)
from holdfast_worker.operation import BadDataError

PROBE = "holdfastprobe"  # Letters alone, which no template changes.
SHOWN = 60


@dataclass(frozen=True)
class Turn:
    """
    `prompt`: all text before the assistant's turn, as it is sampled after; `written`: what the turn
    adds to it.
    """

    prompt: str
    written: str


class ChatFormat:
    """
    `arguments` go to the template beside the messages, as `enable_thinking` of Qwen3's; so do
    `tools`, JSON of the functions that a row offers. `date` (YYYY-MM-DD) is what it takes for
    today; None: it reads the clock. Messages have what `data/prompt.ts` says: JSON of all fields
    but role and content is their `more`.
    """

    def __init__(
        self,
        tokenizer: Any,
        arguments: Mapping[str, Any] | None = None,
        *,
        tools: str | None = None,
        date: str | None = None,
    ) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise BadDataError(
                "Cannot render chat messages "
                "because the model's tokenizer has no chat template: use plain-text prompts or "
                "a chat model"
            )
        self.tokenizer = tokenizer
        self.arguments = {
            **(arguments or {}),
            **(_clock_of(date) if date else {}),
            **({"tools": json.loads(tools)} if tools else {}),
        }

    def prompt(self, messages: Sequence[Message]) -> str:
        """The text that the assistant's next turn is sampled after."""
        return self._render(messages, add_generation_prompt=True)

    @cached_property
    def end(self) -> tuple[str, int] | None:
        """
        Text and id of the special token that the template writes first after what an assistant
        says; None if it writes none, so that a turn ends with the tokenizer's end-of-sequence
        token.
        """
        question, answer = (
            {"role": "user", "content": PROBE},
            {"role": "assistant", "content": PROBE},
        )
        rendered = self._render([question, answer], add_generation_prompt=False)
        after = rendered[rendered.rfind(PROBE) + len(PROBE) :]
        found = [(after.find(text), text) for text in self._special_tokens() if text in after]
        if not found:
            return None
        text = min(found, key=lambda one: (one[0], -len(one[1])))[1]
        return text, int(self.tokenizer.convert_tokens_to_ids(text))

    def turns(self, messages: Sequence[Message], first: int) -> list[Turn]:
        """Every assistant turn from message number `first` on, in order."""
        places = [
            place for place in range(first, len(messages)) if messages[place]["role"] == "assistant"
        ]
        return [self._turn(messages[: place + 1]) for place in places]

    def refuse_ignored(self, messages: Sequence[Message], first: int) -> None:
        """
        Refuses what the template does not write: tools, calls of tools, thoughts in turns that are
        taught (from message number `first` on). Rows would be asked and taught without them, and
        nothing would say so.
        """
        if "tools" in self.arguments:
            bare = ChatFormat(self.tokenizer, {**self.arguments, "tools": None})
            if self._text(messages) == bare._text(messages):
                raise _ignored("tools")
        wholes = [whole_message(message) for message in messages]
        for place, message in enumerate(wholes):
            taught = place >= first and message["role"] == "assistant"
            for field in ("tool_calls", *(THOUGHTS if taught else ())):
                rest = {name: value for name, value in message.items() if name != field}
                both = [[*wholes[:place], one] for one in (message, rest)]
                if message.get(field) and self._same(*both, taught=taught):
                    raise _ignored(f"message {place + 1} {field}")
            if message["content"] is None:
                self._refuse_none(wholes[: place + 1])

    def refuse_rendered(self, messages: Sequence[Message]) -> None:
        """
        Refuses contents that a template has written already: they begin with its special tokens,
        or end with the one that ends a turn. The template would write them a second time.
        """
        for place, message in enumerate(messages):
            content = (message["content"] or "").strip()
            found = next((mark for mark in self._begins if content.startswith(mark)), None)
            if found is None and self.end is not None and content.endswith(self.end[0]):
                found = self.end[0]
            if found is not None:
                raise BadDataError(
                    f"message {place + 1} content: it has {found!r}, which the model's chat template writes "
                    "itself. Fix: give the text without special tokens; a whole chat that is "
                    "rendered already is a text prompt (prompt_as: as_is)"
                )

    @cached_property
    def _begins(self) -> list[str]:
        """The special tokens that the template writes before what a user says."""
        question = self._render([{"role": "user", "content": PROBE}], add_generation_prompt=False)
        before = question.partition(PROBE)[0]
        return sorted(text for text in self._special_tokens() if text in before)

    def _refuse_none(self, messages: Sequence[Message]) -> None:
        """Templates that do not expect a missing content write Python's word for it."""
        empty = self._text([*messages[:-1], {**messages[-1], "content": ""}])
        if (self._text(messages) or "").count("None") > (empty or "").count("None"):
            raise BadDataError(
                f"message {len(messages)} content: the model's chat template writes null as 'None'. "
                "Fix: give an empty text"
            )

    def _same(self, one: Sequence[Message], other: Sequence[Message], *, taught: bool) -> bool:
        if self._text(one) != self._text(other):
            return False
        return not taught or self._written(one) == self._written(other)

    def _written(self, messages: Sequence[Message]) -> str | None:
        """None: the last message cannot be taught."""
        try:
            return self._turn(messages).written
        except BadDataError:
            return None

    def _text(self, messages: Sequence[Message]) -> str | None:
        """None: the template refuses them."""
        try:
            return self._render(messages, add_generation_prompt=False)
        except BadDataError:
            return None

    def _turn(self, messages: Sequence[Message]) -> Turn:
        prompt, whole = (
            self.prompt(messages[:-1]),
            self._render(messages, add_generation_prompt=False),
        )
        if whole.startswith(prompt):
            rest = whole[len(prompt) :]
            opening = opening_of(prompt)
            if opening is not None:
                self._split(messages, opening)
                if not opening.closed and CLOSE not in rest:
                    raise _untaught(len(messages), UNENDED)
        else:
            rest = self._after_opening(messages, prompt)
            if rest is None:
                raise _not_led_to(len(messages), prompt, whole)
        if self.end is None:
            return Turn(prompt, rest.rstrip())
        return Turn(prompt, rest[: rest.rfind(self.end[0]) + len(self.end[0])])

    def _after_opening(self, messages: Sequence[Message], prompt: str) -> str | None:
        """
        What the model writes after a prompt that opens a thought which the conversation does not
        have; None: it differs in something else.
        """
        opening = opening_of(prompt)
        if opening is None:
            return None
        before = list(map(whole_message, messages[:-1]))
        thought, answer = self._split(messages, opening)
        start = prompt.removesuffix(opening.text)
        whole = self._render([*before, answer], add_generation_prompt=False)
        probe = self._render([*before, {**answer, "content": PROBE}], add_generation_prompt=False)
        if not (whole.startswith(start) and probe.startswith(start)):
            return None
        # DeepSeek-V3.1 closes thoughts that it has not opened: the part before the answer is ours.
        prefix = probe[len(start) :].partition(PROBE)[0]
        return thought + whole[len(start) :].removeprefix(prefix)

    def _split(self, messages: Sequence[Message], opening: Opening) -> tuple[str, Message]:
        """Of the last message."""
        try:
            return split_thought(whole_message(messages[-1]), opening)
        except BadDataError as error:
            raise _untaught(len(messages), error) from error

    def _special_tokens(self) -> set[str]:
        added = getattr(self.tokenizer, "added_tokens_decoder", {}).values()
        return {
            *self.tokenizer.all_special_tokens,
            *(token.content for token in added if token.special),
        } - {""}

    def _render(self, messages: Sequence[Message], *, add_generation_prompt: bool) -> str:
        from jinja2 import TemplateError

        try:
            return self.tokenizer.apply_chat_template(
                [_with_arguments(without_tags(whole_message(message))) for message in messages],
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                **self.arguments,
            )
        except (TemplateError, TypeError) as error:
            roles = ", ".join(message["role"] for message in messages)
            raise BadDataError(
                "Cannot render chat messages because the model's chat template refuses them: "
                f"{error}. Their roles are {roles}"
            ) from error


def _clock_of(date: str) -> dict[str, Callable[[str], str]]:
    """`strftime_now` of transformers, which templates ask for today, at the beginning of a day."""
    return {"strftime_now": dt.datetime.fromisoformat(date).strftime}


def _untaught(number: int, why: object) -> BadDataError:
    return BadDataError(f"Cannot train on message {number} of a chat because {why}")


def _not_led_to(number: int, prompt: str, whole: str) -> BadDataError:
    same = next(
        place for place, both in enumerate(zip(prompt + "\0", whole + "\1")) if both[0] != both[1]
    )
    return BadDataError(
        f"Cannot train on message {number} of a chat because the chat template requests it with "
        f"{prompt[same:][:SHOWN]!r}, but the whole conversation has {whole[same:][:SHOWN]!r}. Give completions "
        "the requested form, including a reasoning model's thoughts, or change "
        "model.template_arguments"
    )


def _ignored(field: str) -> BadDataError:
    return BadDataError(
        f"{field}: the model's chat template writes nothing of it. Fix: remove it, or use a model whose template "
        "writes it"
    )


def _with_arguments(message: Message) -> Message:
    """
    Calls with their arguments as an object, which templates expect: OpenAI writes its JSON text.
    """
    calls = message.get("tool_calls")
    return {**message, "tool_calls": [_called(call) for call in calls]} if calls else message


def _called(call: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(call.get("function"), Mapping):
        return {**call, "function": _called(call["function"])}
    arguments = call.get("arguments")
    return {**call, "arguments": json.loads(arguments)} if isinstance(arguments, str) else call
