"""The loop of an interpreter in a sandbox. This file runs inside of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Receive = Callable[[], str]
Send = Callable[[str], None]


def serve(side: str, receive: Receive, send: Send, script: Any = None) -> None:
    """Answers messages until the channel closes, as the program's side, the tests' or, with
    `script`, as one that runs whole programs. While one side waits for the other's answer, it may
    be asked itself. The first thing that it says is that it is there: starting is in no program's
    time.
    """
    send(json.dumps({"up": side}))

    def ask(message: Any) -> Any:
        send(json.dumps({"ask": message}))
        while True:
            reply = json.loads(receive())
            if "answer" in reply:
                return reply["answer"]
            send(json.dumps({"answer": answer_query(reply["ask"])}))

    if side == "program":
        from holdfast_worker.rewards.sandbox.program_side import ProgramSide

        program = ProgramSide(ask)
        answer_query = program.answer
        while True:
            send(json.dumps({"answer": program.answer(json.loads(receive())["ask"])}))
    if side == "script":
        while True:
            send(json.dumps(script(json.loads(receive()))))
    from holdfast_worker.rewards.sandbox.tests_side import TestsSide

    tests = TestsSide(ask)
    answer_query = tests.answer_program
    while True:
        send(json.dumps({"verdict": tests.answer(json.loads(receive()))}))
