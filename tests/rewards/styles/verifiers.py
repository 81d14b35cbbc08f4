"""The classes of verifiers 0.x that the files beside this one import. A user has the package."""

from types import SimpleNamespace


class Parser:
    def parse_answer(self, completion):
        text = completion if isinstance(completion, str) else completion[-1]["content"]
        return text.split("=")[-1].strip()


class Rubric:
    def __init__(self, funcs=None, weights=None, parser=None):
        self.funcs = funcs or []
        self.weights = weights or [1.0] * len(self.funcs)
        self.parser = parser or Parser()
        self.class_objects = {"parser": self.parser}


def _reward(func=None, weight=1.0):
    def mark(function):
        function.reward, function._vf_weight = True, weight
        return function

    return mark if func is None else mark(func)


def _metric(func):
    func.metric = True
    return func


class _TaskData(SimpleNamespace):
    """Its fields are those that a data set has."""


class _Task:
    def __init__(self, data, config=None):
        self.data, self.config = data, config

    @classmethod
    def data_type(cls):
        return _TaskData


v1 = SimpleNamespace(reward=_reward, metric=_metric, TaskData=_TaskData, Task=_Task)
