"""A style: how the reward functions of one framework are recognised, called and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from holdfast_worker.message import whole_message
from holdfast_worker.rewards.styles.reading import Answer
from holdfast_worker.rewards.styles.target import Target

if TYPE_CHECKING:
    from holdfast_worker.rewards.exchange import FunctionSample

Settle = Callable[[Any], Any]  # The result of what a function returned, awaited if it is awaitable.


@dataclass(frozen=True)
class Scorer:
    """A function as its style calls it. `score` has one answer for each sample, in their order; it
    raises what the user's code raises, and BadReturn, for all of them. `needs`: columns that each
    row must have.
    """

    needs: tuple[str, ...]
    score: Callable[[Sequence[FunctionSample], Settle], list[Answer]]


@dataclass(frozen=True)
class Style:
    """`unit`: what one call scores. A group is all samples of one prompt. `recognise`: why a
    function is of this style, or None. `bind` raises TypeError if it cannot be called so.
    """

    name: str
    unit: Literal["sample", "group"]
    signature: str
    recognise: Callable[[Target], str | None]
    bind: Callable[[Target], Scorer]


class Unavailable:
    """An argument that another framework passes and that does not exist here. Reading one of its
    attributes says so.
    """

    def __init__(self, name: str, fix: str) -> None:
        self._name = name
        self._fix = fix

    def __getattr__(self, attribute: str) -> Any:
        raise AttributeError(
            f"Cannot read {self._name}.{attribute} because Holdfast has no {self._name}. "
            f"Fix: {self._fix}"
        )


def own_row(sample: FunctionSample) -> dict[str, Any]:
    """
    The columns as the file has them; `answer`, if it has none, is the row's reference answer, or
    verl's ground truth where that is no text.
    """
    answer = sample.get("answer")
    model = sample["columns"].get("reward_model")
    if answer is None and isinstance(model, dict):
        answer = cast("dict[str, Any]", model).get("ground_truth")
    return {**({} if answer is None else {"answer": answer}), **sample["columns"]}


def prompt_as_in_row(sample: FunctionSample) -> str | list[dict[str, Any]]:
    """A text, or messages if the row has messages."""
    prompt = sample.get("row_prompt", sample["prompt"])
    return prompt if isinstance(prompt, str) else [whole_message(message) for message in prompt]


def prompt_as_messages(sample: FunctionSample) -> list[dict[str, Any]]:
    """The prompt as in the row; a text is the user's message."""
    prompt = prompt_as_in_row(sample)
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt


def completion_as_in_row(sample: FunctionSample) -> str | list[dict[str, Any]]:
    """In the form of the row's prompt: a text, or one message of the assistant."""
    text = sample["completion"]
    is_text = isinstance(prompt_as_in_row(sample), str)
    return text if is_text else [{"role": "assistant", "content": text}]
