"""
Thoughts that the generation prompt opens.

DeepSeek-R1's template ends a prompt with `<think>\\n` and drops the thoughts of all messages; others
end it with an empty thought that messages do not have. What the model writes after such a prompt is
then no part of the rendered conversation: it is the message's own thought, from after the opening.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast_worker.message import Message
from holdfast_worker.operation import BadDataError

# What an assistant says beside its content. A template that writes none of it would teach nothing.
THOUGHTS = ("reasoning_content", "thinking")
OPEN, CLOSE = "<think>", "</think>"
UNENDED = f"its thought has no {CLOSE}. Fix: end the thought, or remove it"
INSIDE = f"{OPEN} or {CLOSE} is inside its thought. Fix: remove it there"
ELSEWHERE = (
    f"its content has {OPEN} or {CLOSE} elsewhere than around one thought at its beginning. Fix: begin it with "
    f"{OPEN}, the thought and {CLOSE}, and remove other such tags"
)
LINE = re.compile(r"(^|\n)[ \t]*$")  # What is before a `</think>` that a line begins with.
OPENING = re.compile(rf"{OPEN}(?P<space>\s*)(?P<closed>{CLOSE}\s*)?$")


@dataclass(frozen=True)
class Opening:
    """
    The end of a prompt: `text`, a `<think>` with what follows it; `space`, the white space after
    it. `closed`: the thought is closed again, so the model starts with its answer.
    """

    text: str
    space: str
    closed: bool


def opening_of(prompt: str) -> Opening | None:
    """The thought that a prompt opens at its end; None: it opens none."""
    found = OPENING.search(prompt)
    return found and Opening(found[0], found["space"], found["closed"] is not None)


def without_tags(message: Message) -> Message:
    """The message with its thoughts as templates expect them: without `<think>` around them."""
    thoughts = {name: message[name] for name in THOUGHTS if isinstance(message.get(name), str)}
    bare = {
        name: value.strip().removeprefix(OPEN).removesuffix(CLOSE).strip("\n")
        for name, value in thoughts.items()
        if OPEN in value or CLOSE in value
    }
    return {**message, **bare}


def split_thought(message: Message, opening: Opening) -> tuple[str, Message]:
    """
    What the model writes before its answer, and the message without thoughts. A message without a
    thought gets an empty one, as Qwen3's templates write.

    :raises BadDataError: if the message's thought has no end or cannot be told from its answer, or
        the prompt has closed it already.
    """
    answer = {name: value for name, value in message.items() if name not in THOUGHTS}
    content = message["content"] or ""
    if OPEN in content or CLOSE in content:
        thought, spoken = _thought_in(content, opening)
        answer["content"] = spoken.lstrip()
        written = thought + CLOSE + spoken[: len(spoken) - len(answer["content"])]
    else:
        message = without_tags(message)
        thought = next((message[name] for name in THOUGHTS if message.get(name)), "").strip("\n")
        if OPEN in thought or CLOSE in thought:
            raise BadDataError(INSIDE)
        written = f"{thought}{opening.space}{CLOSE}{opening.space * 2}"
    if not opening.closed:
        return written, answer
    if thought.strip():
        raise BadDataError(
            "it has a thought, and the prompt already closes an empty one. Fix: remove the "
            "thought, or change model.template_arguments (such as enable_thinking)"
        )
    return "", answer


def _thought_in(content: str, opening: Opening) -> tuple[str, str]:
    """
    The thought at the beginning of a content, from after its opening, and what follows its end.
    Templates keep what is after the last `</think>` (DeepSeek-R1, Qwen3), and of the rest what is
    after the last `<think>` (Qwen3) or nothing: with other tags, part of the text would be lost.
    """
    if CLOSE not in content:
        raise BadDataError(UNENDED)
    thought, _, spoken = content.partition(CLOSE)
    begins = thought.lstrip().startswith(OPEN)
    # Without it, as the model writes after the prompt: on its own line, or tight if the prompt is.
    ends = LINE.search(thought) or (not opening.space and thought == thought.rstrip())
    if content.count(OPEN) != int(begins) or CLOSE in spoken or not (begins or ends):
        raise BadDataError(ELSEWHERE)
    if begins:
        thought = thought.lstrip()[len(OPEN) :].removeprefix(opening.space)
    return thought, spoken
