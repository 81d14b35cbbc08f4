"""
Merges an adapter into its base model: a plain model directory, with the bits that the trainer would
have published merged.

`python -m holdfast_worker.trainer.model.merge_adapter ADAPTER TARGET OPENING`, whose last is JSON of
what the run says about opening its model.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from holdfast_worker import private_files, weights
from holdfast_worker.model_opening import PLAIN, Opening
from holdfast_worker.operation import BadDataError
from holdfast_worker.trainer.model.adapter import Adapter
from holdfast_worker.trainer.model.model_source import ModelSource, saved_names
from holdfast_worker.weights import AdapterBase
from holdfast_worker.wire.types import Lora


def merge_adapter(directory: Path, target: Path, opening: Opening = PLAIN) -> str:
    """
    Writes `target`, which is complete or absent, from the PEFT directory of a run, whose base is
    opened as `opening` says. Returns the digest of its weights.
    """
    import torch

    base: AdapterBase = json.loads((directory / weights.BASE_NAME).read_text())
    if base["quantize"] is not None:
        raise BadDataError(
            f"Cannot merge '{directory}' because its base was trained in {base['quantize']}, whose "
            "weights only that run's GPU environment restores: start a run from it instead"
        )
    path = Path(base["path"])
    digest = weights.digest_of_directory(path)
    if digest != base["digest"]:
        raise BadDataError(
            f"Cannot merge '{directory}' because it was trained on a model with digest "
            f"{base['digest']}: the digest of '{path}' is {digest}. Restore that model"
        )
    names = {short: name for name, short in weights.SAFETENSORS_DTYPES.items()}
    dtype = names[next(iter(weights.locate_tensors(directory))).dtype]
    config = json.loads((directory / weights.ADAPTER_CONFIG_NAME).read_text())
    source = ModelSource(path, opening=opening)
    adapter = Adapter(
        Lora(
            rank=config["r"],
            alpha=config["lora_alpha"],
            dropout=0,
            targets=config["target_modules"],
            quantize=None,
            publish="adapter",
        ),
        seed=0,  # Of an adapter that is new; this one is loaded.
        base=path,
        base_digest=digest,
        saved=directory,
    )
    with torch.no_grad():
        adapted = adapter.add_to(source.open_model(dtype), dtype)
        whole = adapted.state_dict()
        found = {name: whole[name].detach() for name in saved_names(adapted)}
        tensors = adapter.merged(adapted, found, dtype)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as beside:
        written = Path(beside) / target.name
        source.write(written, model=adapted.get_base_model(), tensors=tensors, dtype=dtype)
        private_files.open_as_usual(written)
        weights.fsync_tree(written)
        written.rename(target)
    weights.fsync_path(target.parent)
    return weights.digest_of_directory(target)


def main() -> int:
    directory, target, opening = sys.argv[1:]
    try:
        digest = merge_adapter(Path(directory), Path(target), Opening(**json.loads(opening)))
        print(f"{target}: digest {digest}")
    except (BadDataError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
