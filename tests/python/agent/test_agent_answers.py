"""An agent's answers: what is sent of a task, and for how long it is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast_worker.agent import answers as agent_answers
from holdfast_worker.agent.answers import Answers, carried
from holdfast_worker.agent.link import Link
from holdfast_worker.agent.task import Task
from holdfast_worker.wire.frames import EngineTask, Output
from holdfast_worker.wire.types import Arguments


@pytest.fixture
def link(tmp_path: Path) -> Link:
    """A line to no engine: what is sent waits."""
    nothing: Callable[..., Any] = lambda *_: {}  # noqa: E731
    return Link(
        tmp_path / "hub.json", hello=nothing, heartbeat=nothing, receive=nothing, phase=nothing
    )


def done(**fields: Any) -> Task:
    outputs = {1: json.dumps({"rank": 1}), 0: json.dumps({"rank": 0})}
    request = EngineTask(
        epoch=1,
        seq=1,
        task="t",
        group="trainer",
        generation=1,
        key="k",
        attempt=1,
        op="train",
        args=Arguments(json="{}"),
        args_hash="hash",
    )
    task = Task(request, outputs=outputs)
    for name, value in fields.items():
        setattr(task, name, value)
    return task


def waiting(link: Link) -> list[dict[str, Any]]:
    """As it is on the line."""
    return [json.loads(item.text) for item in link._outbox]


def test_a_result_holds_the_outputs_by_rank_and_its_blobs_by_hash(link: Link) -> None:
    Answers(link).send_result(done(blobs=[b"abc"]))
    assert waiting(link) == [
        {
            "type": "result",
            "task": "t",
            "outputs": [{"json": '{"rank": 0}'}, {"json": '{"rank": 1}'}],
            "blobs": [
                {
                    "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                    "bytes": 3,
                }
            ],
            "seq": 1,
        }
    ]


def test_a_long_output_is_added_to_the_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_answers, "INLINE_BYTES_MAX", 4)
    blobs = [b"first"]
    assert carried("1234", blobs) == Output(json="1234")
    assert carried("12345", blobs) == Output(blob=1)
    assert blobs == [b"first", b"12345"]


def test_a_result_that_no_message_can_hold_fails_its_task_on_every_rank(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_answers, "ANSWER_BYTES_MAX", 2)
    Answers(link).send_result(done(blobs=[b"abc"]))
    (message,) = waiting(link)
    assert [(one["rank"], one["cause"]) for one in message["failures"]] == [
        (1, "bad_data"),
        (0, "bad_data"),
    ]
    assert message["failures"][0]["message"] == (
        "Cannot send the answer of 'train' because it has 1 blobs of 3 bytes together: the limit "
        "is 1024 of 2. Fix: pass it less at once"
    )


def test_an_answer_that_the_protocol_refuses_fails_its_own_task(link: Link) -> None:
    answers = Answers(link)
    answers.send_error(done(), [{"rank": "no number"}])
    (message,) = waiting(link)
    assert message["type"] == "error"
    assert message["failures"][0]["message"].startswith("Cannot send the answer of 'train': ")
    assert "t" in answers


def test_an_answer_is_kept_until_it_is_released_and_sent_again_once_the_line_lost_it(
    link: Link,
) -> None:
    answers = Answers(link)
    answers.send_result(done())
    answers.deliver("t")
    assert len(waiting(link)) == 1
    link._acknowledged(1)
    answers.deliver("t")
    assert [message["seq"] for message in waiting(link)] == [2]
    assert [task.id for task in answers.tasks()] == ["t"]
    answers.release("t")
    answers.release("t")
    assert ("t" in answers, len(waiting(link))) == (False, 1)


def test_a_dropped_answer_is_not_sent_any_more(link: Link) -> None:
    answers = Answers(link)
    answers.send_result(done())
    answers.drop("t")
    assert ("t" in answers, waiting(link)) == (False, [])


def test_an_answer_that_nobody_will_ask_for_is_sent_and_not_kept(link: Link) -> None:
    answers = Answers(link)
    answers.send_result(done(wanted=False))
    assert ("t" in answers, len(waiting(link))) == (False, 1)
