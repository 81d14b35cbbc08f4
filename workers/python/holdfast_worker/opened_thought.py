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


def opening_of(asked: str) -> Opening | None:
    """The thought that a prompt opens at its end; None: it opens none."""
    found = OPENING.search(asked)
    return found and Opening(found[0], found["space"], found["closed"] is not None)


def split_thought(message: Message, opening: Opening) -> tuple[str, Message]:
    """
    What the model writes before its answer, and the message without thoughts. A message without a
    thought gets an empty one, as Qwen3's templates write.

    :raises BadDataError: if the message's thought has no end, or the prompt has closed it already.
    """
    answer = {name: value for name, value in message.items() if name not in THOUGHTS}
    content = message["content"] or ""
    thought, close, said = content.rpartition(CLOSE)
    if close:
        answer["content"] = said.lstrip()
        opened = thought.lstrip().startswith(OPEN)
        written = thought.lstrip()[len(OPEN) :].removeprefix(opening.space) if opened else thought
        written += close + said[: len(said) - len(answer["content"])]
    elif OPEN in content:
        raise BadDataError(UNENDED)
    else:
        thought = next((message[name] for name in THOUGHTS if message.get(name)), "").strip("\n")
        written = f"{thought}{opening.space}{CLOSE}{opening.space * 2}"
    if not opening.closed:
        return written, answer
    if thought.replace(OPEN, "").strip():
        raise BadDataError(
            "it has a thought, and the prompt already closes an empty one. Fix: remove the "
            "thought, or change model.template_arguments (such as enable_thinking)"
        )
    return "", answer
