"""How a rank calls an operation: with what came off the line, or lies beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from holdfast_worker.operation import OperationIO
from holdfast_worker.wire import types
from holdfast_worker.wire.received import Received, decode

# With what came off the line: arguments that nobody has checked, and an answer to be written.
RankOperation = Callable[[object, OperationIO], Mapping[str, object]]
Arguments = TypeVar("Arguments", bound=Received)


def read_arguments(arguments: types.Arguments, io: OperationIO) -> Any:
    """What the engine passes to an operation as JSON, in an artifact if it is long."""
    return json.loads(
        io.read_artifact(arguments.artifact) if arguments.artifact else arguments.json or ""
    )


def typed(
    arguments: type[Arguments], operation: Callable[[Arguments, OperationIO], Mapping[str, object]]
) -> RankOperation:
    """The operation as a rank calls it: with the received values."""
    return lambda args, io: dict(operation(decode(arguments, args), io))
