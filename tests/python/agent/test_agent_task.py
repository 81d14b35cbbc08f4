"""A task as an agent tells the engine of it."""

from holdfast_worker.agent.task import Task
from holdfast_worker.wire.frames import EngineTask, HeldTask
from holdfast_worker.wire.types import Arguments


def test_held_tells_what_was_asked_and_how_far_it_is() -> None:
    request = {
        "task": "t",
        "group": "trainer",
        "generation": 2,
        "key": "k",
        "attempt": 1,
        "epoch": 3,
        "op": "train",
        "args_hash": "h",
    }
    task = Task(EngineTask(seq=9, args=Arguments(json="{}"), **request))
    assert (task.id, task.group, task.op) == ("t", "trainer", "train")
    assert task.held("running") == HeldTask(**request, cancelled=False, state="running")
    task.cancelled = True
    assert task.held("finished") == HeldTask(**request, cancelled=True, state="finished")
