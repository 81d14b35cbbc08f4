"""What the engine sends: specs of groups, arguments of operations, artifacts that these name.

Generated from `workers/` by `deno task schema`.
They are whole: no field has a default. Missing, unknown and wrongly typed fields are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

from holdfast_worker.json_value import JsonValue
from holdfast_worker.wire.wire import Whole

ROLES = ("trainer", "sampler", "reward")
PHASES = {
    ("trainer", "train"): "training",
    ("trainer", "score"): "training",
    ("trainer", "evaluate"): "training",
    ("trainer", "publish"): "publication",
    ("trainer", "save"): "checkpoint",
    ("sampler", "load"): "publication",
    ("sampler", "generate"): "generation",
}


class ArtifactRef(TypedDict):
    sha256: str
    bytes: int


class Chat(TypedDict):
    template_arguments: dict[str, JsonValue]
    date: NotRequired[str]


class RatioBounds(TypedDict):
    low: float | None
    high: float | None
    ratio: Literal["token", "sequence", "sequence_mean"]


class Schedule(TypedDict):
    name: Literal["constant", "linear", "cosine"]
    warmup_steps: int
    total_steps: int | None
    min_ratio: float


class Optimizer(TypedDict):
    name: NotRequired[Literal["adamw", "muon", "adafactor"]]
    lr: float
    betas: list[float]
    eps: float
    weight_decay: float
    clip_grad_norm: float | None
    schedule: Schedule


class Lora(TypedDict):
    rank: int
    alpha: float
    dropout: float
    targets: Literal["all_linear"] | list[str]
    quantize: Literal["nf4"] | None
    publish: Literal["merged", "adapter"]


class Offload(TypedDict):
    optimizer: bool
    parameters: bool


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


class Message(TypedDict):
    role: str
    content: str | None
    more: NotRequired[str]


class Row(TypedDict):
    row_id: str
    prompt: str | list[Message]
    completion: NotRequired[str | list[Message]]
    rejected: NotRequired[str | list[Message]]
    margin: NotRequired[float]
    answer: NotRequired[str]
    tools: NotRequired[str]
    columns: dict[str, JsonValue]


class GroupRef(TypedDict):
    draw: int
    slab: ArtifactRef
    index: int
    samples: list[int]


class SequenceColumn(TypedDict):
    kind: Literal["sequence"]
    values: list[float]


class TokenColumn(TypedDict):
    kind: Literal["token"]
    artifact: ArtifactRef


class PreferencePair(TypedDict):
    row_id: str
    prompt: str | list[Message]
    chosen: str | list[Message]
    rejected: str | list[Message]
    margin: float
    tools: NotRequired[str]


class TrajectoryBatch(TypedDict):
    kind: Literal["trajectories"]
    groups: list[GroupRef]
    columns: dict[str, SequenceColumn | TokenColumn]
    staleness: list[int]
    masked: NotRequired[list[int]]
    temperature: float
    coef: dict[str, float]
    updates: list[list[int]]


class SupervisedBatch(TypedDict):
    kind: Literal["supervised"]
    rows: list[Row]
    chat: NotRequired[Chat]
    temperature: float
    coef: dict[str, float]
    updates: list[list[int]]


class PreferenceBatch(TypedDict):
    kind: Literal["preference"]
    pairs: list[PreferencePair]
    chat: NotRequired[Chat]
    columns: dict[str, SequenceColumn | TokenColumn]
    temperature: float
    coef: dict[str, float]
    updates: list[list[int]]


class Draw(TypedDict):
    draw: int
    row: Row
    prompt_tokens_max: NotRequired[int]
    chat: NotRequired[Chat]


class Slab(TypedDict):
    id: str
    draws: list[Draw]


class Sampling(TypedDict):
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repetition_penalty: float
    tokens_max: int
    stop: list[str]
    stop_token_ids: list[int]
    ignore_eos: bool


class ArgumentsInline(TypedDict):
    json: str


class ArgumentsBeside(TypedDict):
    artifact: ArtifactRef


class RewardProcess(TypedDict):
    env: list[str]
    memory_gib: float | None
    cpu_s: float | None
    file_mib: float | None
    processes_max: int
    isolate: bool


class RewardModelSettings(TypedDict):
    path: str
    dtype: Literal["float32", "bfloat16"]
    device: Literal["auto", "cpu", "cuda"]
    threads: int
    template_arguments: dict[str, JsonValue]
    turn_end: Literal["template", "eos_token"]
    batch_tokens_max: int


class CompletionItem(TypedDict):
    id: str
    completion: str
    tokens: int
    token_ids: list[int]
    stop: Literal["stop", "length", "max_turns", "timeout", "error", "abort"]


@dataclass(frozen=True)
class TrainerSpec(Whole):
    engine: Literal["torch", "deepspeed"]
    zero: int
    dtype: Literal["float32", "bfloat16"]
    logits_chunk_tokens: int | None
    packing: bool
    dropout: float
    lora: Lora | None
    offload: Offload
    gradient_checkpointing: bool
    threads: int
    device: Literal["auto", "cpu", "cuda"]
    attn_implementation: str | None
    trust_remote_code: bool
    open_with_missing: bool
    open_with_unexpected: bool
    seed: int
    head: Literal["value", "score"] | None


@dataclass(frozen=True)
class TrainerCreateModel(Whole):
    recipe: str
    seed: int
    dir: str


@dataclass(frozen=True)
class TrainerInspectModel(Whole):
    dir: str


@dataclass(frozen=True)
class TrainerMeasureRows(Whole):
    model_path: str
    use: Literal["prompt", "completion", "preference"]
    rows: ArtifactRef
    chat: Chat | None


@dataclass(frozen=True)
class TrainerOpenAlgorithm(Whole):
    algorithm: ArtifactRef


@dataclass(frozen=True)
class TrainerCredit(Whole):
    algorithm: ArtifactRef
    round: ArtifactRef


@dataclass(frozen=True)
class TrainerLoad(Whole):
    version: str
    model_path: str
    optimizer: Optimizer
    checkpoint: Checkpoint | None
    model_digest: str | None


@dataclass(frozen=True)
class TrainerTrain(Whole):
    from_: str
    to: str
    batch: ArtifactRef
    loss: ArtifactRef
    optimizer: Optimizer
    micro_batch_tokens_max: int
    logits_chunk_tokens: int | None
    packing: bool
    mismatch: RatioBounds | None
    non_finite_max: int | None


@dataclass(frozen=True)
class TrainerScore(Whole):
    version: str
    batch: ArtifactRef
    columns: list[Literal["old_logp", "ref_logp", "values", "bootstrap", "score"]]
    reference_path: str | None
    reference_digest: str | None
    reference_offload: bool
    micro_batch_tokens_max: int
    logits_chunk_tokens: int | None
    packing: bool


@dataclass(frozen=True)
class TrainerEvaluate(Whole):
    version: str
    batch: ArtifactRef
    loss: ArtifactRef
    micro_batch_tokens_max: int
    logits_chunk_tokens: int | None
    packing: bool


@dataclass(frozen=True)
class TrainerPublish(Whole):
    version: str
    dir: str
    form: Literal["merged", "adapter"] | None


@dataclass(frozen=True)
class TrainerSave(Whole):
    version: str
    dir: str


@dataclass(frozen=True)
class SamplerSpec(Whole):
    engine: Literal["huggingface", "vllm"]
    dtype: Literal["float32", "bfloat16"]
    threads: int
    device: Literal["auto", "cpu", "cuda"]
    max_model_len: int | None
    kv_cache_gib: float | None
    vllm: dict[str, JsonValue]
    attn_implementation: str | None
    trust_remote_code: bool
    open_with_missing: bool
    open_with_unexpected: bool
    seed: int


@dataclass(frozen=True)
class SamplerLoad(Whole):
    version: str
    model_path: str
    publication: Publication


@dataclass(frozen=True)
class SamplerGenerate(Whole):
    version: str
    slab: Slab
    samples_per_prompt: int
    sampling: Sampling
    seed: int


@dataclass(frozen=True)
class SamplerProbe(Whole):
    pass


@dataclass(frozen=True)
class RewardSpec(Whole):
    processes: int


@dataclass(frozen=True)
class RewardScore(Whole):
    function: str
    style: str | None
    settings: str | None
    process: RewardProcess
    timeout_ms: float
    shared: ArgumentsInline | ArgumentsBeside
    items: list[CompletionItem]


@dataclass(frozen=True)
class RewardIdentify(Whole):
    function: str
    style: str | None
    settings: str | None
    process: RewardProcess


@dataclass(frozen=True)
class RewardScoreByModel(Whole):
    model: RewardModelSettings
    shared: ArgumentsInline | ArgumentsBeside
    items: list[CompletionItem]


Batch = TrajectoryBatch | SupervisedBatch | PreferenceBatch
