"""NeMo Gym's `verify(body)`, as a function or as the method of a resources server."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from holdfast_worker.rewards.styles.reading import (
    NOT_APPLICABLE,
    Answer,
    BadReturn,
    Score,
    answer_of,
    number,
    numbers_among,
)
from holdfast_worker.rewards.styles.style import (
    Scorer,
    Settle,
    Style,
    Unavailable,
    own_row,
    prompt_as_messages,
)
from holdfast_worker.rewards.styles.target import Target

if TYPE_CHECKING:
    from holdfast_worker.rewards.exchange import FunctionSample

REQUEST = Unavailable("request", "read what it needs from `body`")


def _recognise(target: Target) -> str | None:
    verify = _verify(target.value)
    if verify is None or "body" not in Target.of(verify).names:
        return None
    return "its parameter body" if verify is target.value else "its method verify(body)"


def _verify(value: Any) -> Any:
    """The function itself, or the method of a server, unbound if it is a class."""
    method = getattr(value, "verify", None)
    if callable(method):
        return method
    return value if callable(value) and not inspect.isclass(value) else None


class Body(SimpleNamespace):
    """A request without its class: fields as attributes."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {name: _plain(value) for name, value in vars(self).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[Any]", value)]
    return value.model_dump() if isinstance(value, Body) else value


def _bind(target: Target) -> Scorer:
    server: Any = target.value
    if inspect.isclass(server):
        # A server's settings are for its web server: `verify` has what the row has.
        make = getattr(server, "model_construct", server)
        server = make()
    verify = Target.of(_verify(server))
    verify.require_names("nemo_gym", ("body", "request"))
    body_class = _class_of_body(verify.value)

    def score(samples: Sequence[FunctionSample], settle: Settle) -> list[Answer]:
        (sample,) = samples
        fields = _fields(sample)
        body = body_class.model_validate(fields) if body_class else _body(fields)
        arguments = verify.accepted({"body": body, "request": REQUEST})
        returned = settle(verify.value(**arguments))
        return [answer_of(_read, returned, known=set(fields))]

    return Scorer(needs=(), score=score)


def _class_of_body(verify: Any) -> Any:
    """The pydantic class that the parameter `body` is declared with; None: it has none."""
    try:
        declared = get_type_hints(verify).get("body")
    except Exception:  # A name that exists only for type checkers: the body is then plain.
        return None
    return declared if hasattr(declared, "model_validate") else None


def _body(value: Any) -> Any:
    if isinstance(value, list):
        return [_body(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return Body(**{str(name): _body(one) for name, one in fields.items()})
    return value


def _fields(sample: FunctionSample) -> dict[str, Any]:
    """The row as its file has it, and the completion as the answer of the Responses API."""
    text: dict[str, Any] = {"type": "output_text", "text": sample["completion"], "annotations": []}
    message: dict[str, Any] = {
        "id": f"msg_{sample['id']}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    response: dict[str, Any] = {
        "id": f"resp_{sample['id']}",
        "created_at": 0.0,
        "model": "policy",
        "object": "response",
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    return {
        "responses_create_params": {"input": prompt_as_messages(sample)},
        **own_row(sample),
        "response": response,
    }


def _read(returned: Any, *, known: set[str]) -> Score:
    """`reward`, and of the other numbers those that the request did not have."""
    every: Any = returned.model_dump() if hasattr(returned, "model_dump") else returned
    if isinstance(every, SimpleNamespace):
        every = vars(every)
    if not isinstance(every, Mapping) or "reward" not in every:
        raise BadReturn(f"returned {returned!r:.200}: expected a response with `reward`")
    fields = cast("Mapping[str, Any]", every)
    if fields["reward"] is None:
        return NOT_APPLICABLE
    components: object = fields.get("reward_components")
    is_many = isinstance(components, Mapping)
    parts: Mapping[str, Any] = cast("Mapping[str, Any]", components) if is_many else {}
    more = {name: value for name, value in fields.items() if name not in {*known, "reward"}}
    return Score(number("reward", fields["reward"]), numbers_among({**more, **parts}))


NEMO_GYM = Style(
    name="nemo_gym",
    unit="sample",
    signature="verify(body)",
    recognise=_recognise,
    bind=_bind,
)
