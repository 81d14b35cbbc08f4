"""The worker of `tests/workers/roles/tracker.ts`. A test writes its types into `tracker_types`."""

from __future__ import annotations

import os
from typing import Any

from tracker_types import TrackerFollow, TrackerOpen, TrackerSpec

from holdfast_worker.operation import OperationIO, RankContext
from holdfast_worker.wire.operation import typed
from holdfast_worker.wire.received import decode


class Worker:
    def __init__(self, context: RankContext) -> None:
        self._scale = decode(TrackerSpec, context.spec).scale
        self._map: str | None = None
        self.operations = {
            "open": typed(TrackerOpen, self.open),
            "follow": typed(TrackerFollow, self.follow),
        }

    def boot(self) -> dict[str, Any]:
        return {"device": "cpu"}

    def open(self, args: TrackerOpen, io: OperationIO) -> dict[str, Any]:
        self._map = args.map
        return {"map": args.map}

    def follow(self, args: TrackerFollow, io: OperationIO) -> dict[str, Any]:
        if args.map != self._map:
            return {"not_resident": self._map}
        places = [f"{args.map}:{frame.x * self._scale}" for frame in args.frames]
        labels = [frame.label for frame in args.frames]
        seen = [{"at": at, "label": label} for at, label in zip(places, labels, strict=True)]
        if "lie" in labels:
            return {"pid": os.getpid(), "seen": "everything"}
        return {"pid": os.getpid(), "seen": seen}
