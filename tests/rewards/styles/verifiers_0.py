"""Rewards in the shapes of verifiers 0.x: of a rollout, of a group, and a rubric of both."""

import verifiers as vf


async def right(completion, answer, prompt, info, state):
    assert state["completion"] == completion and state["prompt"] == prompt
    return float(completion[-1]["content"] == answer) * info.get("factor", 1)


def shortest(completions, answers, states) -> list[float]:
    lengths = [len(completion[-1]["content"]) for completion in completions]
    return [float(length == min(lengths)) for length in lengths]


def correct_answer(parser, completion, answer, **kwargs):
    if "boom" in str(completion):
        raise ValueError("cannot read it")
    return 1.0 if parser.parse_answer(completion) == answer else 0.0


rubric = vf.Rubric(funcs=[correct_answer, shortest], weights=[1.0, 0.5], parser=vf.Parser())
