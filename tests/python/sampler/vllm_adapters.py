"""
Loads adapters into the vLLM sampler and samples: python vllm_adapters.py FOLDER, with
FOLDER/publications.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import sampler_fixtures as fixtures
from holdfast_worker.sampler.publication import probe_sequences


def main() -> None:
    folder = Path(sys.argv[1])
    worker = fixtures.make_worker("vllm")
    answers = []
    for publication in json.loads((folder / "publications.json").read_text()):
        answers.append(fixtures.load(worker, Path(publication["base"]["dir"]), publication))
        sequences = probe_sequences(worker.engine.vocabulary, worker.engine.length_max)
        np.save(folder / f"{publication['version']}.npy", worker.engine.probe(sequences))
    arguments = fixtures.slab_arguments(answers[-1]["version"])
    (folder / "slab").write_bytes(fixtures.generate(worker, arguments)[1])
    (folder / "answers.json").write_text(json.dumps(answers))
    worker.close()


if __name__ == "__main__":  # vLLM starts its processes by importing this file again.
    main()
