"""The program's side: it answers whatever it is asked, with an error if it cannot."""

from __future__ import annotations

from typing import Any

from holdfast_worker.rewards.sandbox.program_side import ProgramSide


def side_of(source: str) -> tuple[ProgramSide, Any]:
    side = ProgramSide(lambda message: {"value": message["args"][0]})
    return side, side.answer({"op": "load", "source": source})


def test_load_gives_the_names_that_a_program_defines() -> None:
    _, said = side_of("import math\nx = (1, 2)\nclass E(KeyError): pass\n_y = 2")
    classes = ["E", "KeyError", "LookupError", "Exception", "BaseException", "object"]
    assert said["names"] == {
        "math": {"module": "math"},
        "x": {"tuple": [1, 2]},
        "E": {"exception": classes},
        "_y": 2,
    }


def test_call_says_which_arguments_were_changed() -> None:
    side, said = side_of("def f(a, b): a.append(b); return len(a)")
    message = {"op": "call", "of": said["names"]["f"], "args": [{"list": [1]}, 2], "named": {}}
    assert side.answer(message) == {"value": 2, "changed": [[0, {"list": [1, 2]}]]}


def test_what_fails_is_an_error_and_no_end() -> None:
    side, said = side_of("raise SystemExit(0)")
    assert said["error"]["classes"][0] == "SystemExit"
    for message in ({"op": "nothing"}, {}, 3, {"op": "len", "args": [{"ref": 1}]}):
        assert "error" in side.answer(message)
