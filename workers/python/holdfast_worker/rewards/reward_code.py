"""A reward function and what its processes may use: the `process` part of a reward's settings."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast_worker.wire.types import RewardProcess


@dataclass(frozen=True)
class RewardCode:
    """`function`: path.py:function, or package.module:function. `style`: how it is called; None: as
    its signature says. `settings`: JSON, from which it makes the function to call. `env`: names
    that its processes inherit beside the usual ones. Sizes are per process, `cpu_s` per call;
    `processes_max` limits the processes that a call has at one time. None: no limit.
    """

    function: str
    style: str | None
    env: tuple[str, ...]
    memory_gib: float | None
    cpu_s: float | None
    file_mib: float | None
    processes_max: int
    isolate: bool
    settings: str | None = None

    @classmethod
    def of(
        cls,
        function: str,
        process: RewardProcess,
        *,
        style: str | None,
        settings: str | None = None,
    ) -> RewardCode:
        return cls(
            function=function,
            style=style,
            settings=settings,
            env=tuple(process.env),
            memory_gib=process.memory_gib,
            cpu_s=process.cpu_s,
            file_mib=process.file_mib,
            processes_max=process.processes_max,
            isolate=process.isolate,
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RewardCode:
        fields: dict[str, Any] = json.loads(text)
        return cls(env=tuple(fields.pop("env")), **fields)
