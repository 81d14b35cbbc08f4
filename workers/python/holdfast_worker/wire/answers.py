"""What operations answer: typed dictionaries, since the engine checks every answer.

Generated from `workers/` by `deno task schema`.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class NotResident(TypedDict):
    not_resident: str | None


class FileEntry(TypedDict):
    path: str
    sha256: str
    bytes: int


class TensorEntry(TypedDict):
    name: str
    dtype: str
    shape: list[int]
    sha256: str


class Checkpoint(TypedDict):
    version: str
    dir: str
    digest: str
    world_size: int
    files: list[FileEntry]


class PublicationBase(TypedDict):
    dir: str
    digest: str


class PublicationProbe(TypedDict):
    tokens: list[int]
    logp: list[float]


class Publication(TypedDict):
    version: str
    dir: str
    digest: str
    tensors: list[TensorEntry]
    files: list[FileEntry]
    base: NotRequired[PublicationBase]
    probe: NotRequired[PublicationProbe]


class Numerics(TypedDict):
    engine: str
    zero: int
    world_size: int
    dtype: str
    threads: int
    device: str
    packages: dict[str, str]
    micro_batch_tokens_max: int
    logits_chunk_tokens: int | None
    packing: bool
    dropout: float
    lora: NumericsLora | None
    offload: NumericsOffload
    attn_implementation: str | None
    trust_remote_code: bool
    open_with_missing: bool


class AlgorithmDescription(TypedDict):
    settings: dict[str, float | str | bool | list[float | str | bool | None] | None]
    inputs: list[str]
    metrics: list[str]
    needs: list[Literal["parts", "old_logp", "ref_logp", "values", "bootstrap", "coef"]] | None
    value_inputs: list[str] | None
    group_min: int
    coef: dict[str, float]
    pairs: bool
    mismatched: bool
    live_statistics: bool


class SkippedStep(TypedDict):
    cause: Literal["loss", "grad_norm"]
    node: str | None
    sequence: int | None
    token: int | None


class StepRecord(TypedDict):
    loss: float | None
    grad_norm: float | None
    skipped: NotRequired[SkippedStep]
    lr: float
    loss_scale: NotRequired[float]
    n_tokens: float
    n_sequences: float
    micro_batches: int
    metrics: dict[str, float]
    tokens_sha256: NotRequired[str]


class EvaluatedBatch(TypedDict):
    loss: float
    n_tokens: float
    n_sequences: float
    micro_batches: int
    metrics: dict[str, float]


class NumericsLora(TypedDict):
    rank: int
    alpha: float
    dropout: float
    targets: str | list[str]
    quantize: str | None
    seed: int


class NumericsOffload(TypedDict):
    optimizer: bool
    parameters: bool


class RefusedRow(TypedDict):
    row: int
    why: str


class Probe(TypedDict):
    logp: list[float]
    sha256: str


class ScoredItem(TypedDict):
    id: str
    outcome: Literal["ok", "none", "timeout", "error", "bad_return", "crash", "bad_answer"]
    score: float | None
    metrics: dict[str, float]
    error: str | None
    ms: float
    token_scores: NotRequired[list[float]]
    code: NotRequired[str]


class Identity(TypedDict):
    code: str
    unit: Literal["sample", "group"]


class TrainerCreateModelAnswer(TypedDict):
    dir: str
    digest: str


class TrainerInspectModelAnswer(TypedDict):
    digest: str
    parameters: int
    architecture: str


class TrainerMeasureRowsAnswer(TypedDict):
    rows: int
    model_tokens_max: int | None
    refused: NotRequired[RefusedRow]


TrainerOpenAlgorithmAnswer = AlgorithmDescription


class TrainerCreditAnswer(TypedDict):
    sequences: int


class TrainerLoadAnswer(TypedDict):
    version: str
    numerics: Numerics


class TrainerTrainAnswer(TypedDict):
    version: str
    steps: list[StepRecord]


class TrainerScoreAnswer(TypedDict):
    columns: list[str]


TrainerEvaluateAnswer = EvaluatedBatch


TrainerPublishAnswer = Publication


TrainerSaveAnswer = Checkpoint


class SamplerLoadAnswer(TypedDict):
    version: str
    probe: Probe
    previous_probe: Probe | None
    tensors_loaded: int
    seconds: float


class SamplerGenerateAnswer(TypedDict):
    version: str
    groups: int
    samples: int
    tokens: int
    prompt_tokens: int
    seconds: float


SamplerProbeAnswer = Probe


class RewardScoreAnswer(TypedDict):
    results: list[ScoredItem]


RewardIdentifyAnswer = Identity


class RewardScoreByModelAnswer(TypedDict):
    results: list[ScoredItem]
