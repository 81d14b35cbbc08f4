"""Whether a model directory still has the weights that a run recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast_worker import weights
from holdfast_worker.operation import BadDataError
from holdfast_worker.wire.answers import TensorEntry

Seen = list[tuple[str, int, int, int]]
SHOWN = 12  # Hexadecimal digits of a digest in a message.


class ModelDigests:
    """
    Digests of model directories, each read once per process: a start hashes its base model anyway,
    and models opened then were hashed a moment ago. A directory is read again if names, sizes,
    times or inodes of its weight files have changed.
    """

    def __init__(self) -> None:
        self.known: dict[str, tuple[Seen, str]] = {}

    def of(self, directory: str | Path, *, manifest: list[TensorEntry] | None = None) -> str:
        """
        The digest of the weights. `manifest` receives their tensors; then they are always read.
        """
        seen = _seen(directory)
        known = self.known.get(str(directory))
        if manifest is None and known is not None and known[0] == seen:
            return known[1]
        tensors, digest = weights.manifest_of_directory(directory)
        if manifest is not None:
            manifest += tensors
        self.known[str(directory)] = (seen, digest)
        return digest

    def check(self, directory: str | Path, recorded: str | None, engine: Any) -> None:
        """
        Raises BadDataError on every rank if the weights that rank 0 reads differ from the recorded
        ones. None: unknown.
        """
        if recorded is None:
            return
        found, error = engine.gather(self._read(directory) if engine.rank == 0 else ("", ""))[0]
        if error:
            raise BadDataError(error)
        if found != recorded:
            raise BadDataError(
                f"Cannot open model '{directory}' because its weights differ from those that the "
                "run "
                "recorded: their digest "
                f"is {found[:SHOWN]}, recorded {recorded[:SHOWN]}. Fix: restore the recorded "
                "weights, "
                "then resume (a model "
                "that the run created is recreated if its directory is moved away); or start a new "
                "run"
            )

    def _read(self, directory: str | Path) -> tuple[str, str]:
        """(digest, why there is none): the other ranks wait for one of them."""
        try:
            return self.of(directory), ""
        except BadDataError as error:
            return "", str(error)


def _seen(directory: str | Path) -> Seen:
    stats = [(path.name, path.stat()) for path in weights.weight_files(directory)]
    return [(name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in stats]
