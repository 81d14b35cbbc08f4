"""Rewards in the shape of verifiers v1: methods of a task, over the trace of a rollout."""

import verifiers

vf = verifiers.v1


class AdditionTask(vf.Task):
    @vf.reward
    async def exact_match(self, trace) -> float:
        return float(trace.last_reply == str(self.data.answer))

    @vf.reward(weight=0.5)
    async def brief(self, task, trace) -> dict[str, float]:
        return {"short": float(len(trace.last_reply) < 3), "turns": float(trace.num_turns == 1)}

    @vf.metric
    async def characters(self, trace) -> float:
        return float(len(trace.last_reply))


@vf.reward
async def one(task, trace) -> float:
    return float(trace.last_reply == task.answer)
