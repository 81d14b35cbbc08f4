"""As verifiers' page "Environments" shows a rubric's functions."""


async def correct_answer(completion, answer) -> float:
    response = completion[-1]["content"]
    return 1.0 if answer in response else 0.0


async def distinct(completion, info, state) -> float:
    response = completion[-1]["content"]
    state["distinct"] = len(set(response))
    return state["distinct"] / 100 if info["type"] == "sum" else 0.0
