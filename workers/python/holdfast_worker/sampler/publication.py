"""
Publications: reading one with its hashes checked, and the proof that its weights reached the
kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from holdfast_worker import weights
from holdfast_worker.operation import BadDataError
from holdfast_worker.sampler.engine import Engine
from holdfast_worker.sampler.randomness import uniforms
from holdfast_worker.wire.answers import Probe
from holdfast_worker.wire.types import Publication, SamplerSpec, TensorEntry

PROBE_SEQUENCES = 8
PROBE_TOKENS = 32
# Mean difference per token between trainer and sampler, by what they compute in. Wide, to find other
# models and not other kernels: docs/decisions/0056-one-model-in-a-run.md.
TRAINER_TOLERANCE = {"float32": 0.05, "16 bits": 0.5}
PROBE_SEED = 20_240  # Any number; fixed, so that probes of different processes can be compared.


def read_tensors(publication: Publication) -> Iterator[tuple[str, Any]]:
    """(name, torch tensor) of every tensor of the manifest; each is hashed as it is handed over.

    Raises BadDataError if one is missing, is not in the manifest, or is not the recorded one.
    """
    from safetensors import safe_open

    expected = {entry.name: entry for entry in publication.tensors}
    directory = publication.dir
    for path in weights.weight_files(directory):
        with cast(Any, safe_open(path, framework="pt")) as file:  # It has no types.
            for name in file.keys():  # noqa: SIM118  (not a dict)
                entry = expected.pop(name, None)
                if entry is None:
                    raise BadDataError(
                        f"Cannot load publication '{directory}' because tensor '{name}' is not in its manifest"
                    )
                tensor = file.get_tensor(name)
                _check(directory, entry, tensor)
                yield name, tensor
    if expected:
        raise BadDataError(
            f"Cannot load publication '{directory}' because tensor '{min(expected)}' is missing from its files"
        )


def _check(directory: str, entry: TensorEntry, tensor: Any) -> None:
    found = {
        "dtype": weights.tensor_dtype(tensor),
        "shape": list(tensor.shape),
        "sha256": hashlib.sha256(weights.tensor_bytes(tensor)).hexdigest(),
    }
    recorded = {"dtype": entry.dtype, "shape": entry.shape, "sha256": entry.sha256}
    if found != recorded:
        raise BadDataError(
            f"Cannot load publication '{directory}' because tensor '{entry.name}' is not the recorded one: "
            f"it is {found}, recorded {recorded}"
        )


def probe_sequences(vocabulary: int, length_max: int) -> list[list[int]]:
    """The fixed tokens: [8][32], the same for every model with this vocabulary."""
    count = min(PROBE_TOKENS, length_max - 1)
    rows = [(place, 0) for place in range(PROBE_SEQUENCES)]
    return (uniforms(PROBE_SEED, rows, first=0, count=count) * vocabulary).astype(np.int64).tolist()


def probe_record(logp: np.ndarray) -> Probe:
    values = np.ascontiguousarray(logp, dtype="<f4")
    return {
        "logp": [float(value) for value in values],
        "sha256": hashlib.sha256(values.tobytes()).hexdigest(),
    }


@dataclass(frozen=True)
class Proof:
    """
    What the probes said of the weights in the engine. `short`: of the first fixed sequence, `long`:
    of all eight.
    """

    digest: str | None
    short: np.ndarray
    long: np.ndarray


def take_proof(engine: Engine, digest: str | None) -> Proof:
    """Probes the resident weights: the first sequence is the probe that is reported."""
    sequences = probe_sequences(engine.vocabulary, engine.length_max)
    short = engine.probe(sequences[:1])
    rest = engine.probe(sequences)
    if not (np.isfinite(short).all() and np.isfinite(rest).all()):
        raise BadDataError(
            "Cannot publish because the probe's log-probabilities are not finite: the weights are broken"
        )
    return Proof(digest, short, rest)


def prove(engine: Engine, publication: Publication, previous: Proof) -> Proof:
    """
    The proof of the publication just loaded, after `previous` (the noise, at first).

    Other weights must give another probe: on the first sequence, else on all positions of eight,
    else a cold load decides. An update can be too small to be seen, so only a cold load that
    differs from what is resident (by more than the engine's starts differ among themselves) fails
    the publication.
    """
    proof = take_proof(engine, publication.digest)
    changed = previous.digest != publication.digest
    if not changed or _differ(proof.short, previous.short) or _differ(proof.long, previous.long):
        return proof
    sequences = probe_sequences(engine.vocabulary, engine.length_max)
    cold = engine.cold_probe(publication.dir, sequences)
    off = float(np.abs(cold - proof.long).max())
    if not off <= engine.cold_tolerance:
        raise BadDataError(
            f"Cannot publish version {publication.version} because the sampler still uses old weights: the probe is "
            f"as it was at digest {previous.digest}, a cold load of '{publication.dir}' is off by up to "
            f"{off:.3g}. Replace this sampler"
        )
    return take_proof(engine, publication.digest)  # The cold load may be what is in the engine now.


def tolerance_of(spec: SamplerSpec, publication: Publication) -> float | None:
    """
    How far a sampler's log-probabilities of the trainer's probe may be from the trainer's, on
    average. None: vLLM quantizes the weights, so they are different ones.
    """
    if spec.vllm.get("quantization") is not None:
        return None
    dtypes = {spec.dtype, str(spec.vllm.get("dtype", spec.dtype))}
    whole = dtypes == {"float32"} and all(one.dtype == "F32" for one in publication.tensors)
    return TRAINER_TOLERANCE["float32" if whole else "16 bits"]


def compare_with_trainer(
    engine: Engine, publication: Publication, *, tolerance: float | None
) -> None:
    """
    Raises BadDataError if the engine computes a different model from the weights than the trainer.
    `tolerance`: mean difference of a token's log-probability; None: anything.
    """
    probe = publication.probe
    if not probe or tolerance is None:
        return
    samplers = engine.probe([probe.tokens[: engine.length_max - 1]])
    trainers = np.array(probe.logp[: len(samplers)])
    off = float(np.abs(samplers - trainers).mean())
    if not off <= tolerance:
        raise BadDataError(
            f"Cannot publish version {publication.version} because sampler and trainer compute "
            "different models from the same weights: the mean log-probability of "
            f"{len(samplers)} fixed tokens is {samplers.mean():.4f} in the sampler and {trainers.mean():.4f} "
            f"in the trainer, and they differ by {off:.3g} per token, more than {tolerance}. Fix: "
            "use sampler.engine: huggingface; if that differs too, the model's config.json does "
            "not describe its weights"
        )


def _differ(left: np.ndarray, right: np.ndarray) -> bool:
    return left.shape != right.shape or left.tobytes() != right.tobytes()
