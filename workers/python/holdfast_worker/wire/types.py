"""What the engine sends: specs of groups, arguments of operations, artifacts that these name.

Generated from `workers/` by `deno task schema`.
They are whole: no field has a default. Missing, unknown and wrongly typed fields are refused.
`UNSET`: a field that may be left out was.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType, field

from holdfast_worker.json_value import JsonValue, Number
from holdfast_worker.wire.received import OneOf, Received

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


class ArtifactRef(Received, frozen=True, kw_only=True):
    sha256: str
    bytes: int


class Chat(Received, frozen=True, kw_only=True):
    template_arguments: dict[str, JsonValue]
    date: str | UnsetType = UNSET


class RatioBounds(Received, frozen=True, kw_only=True):
    low: Number | None
    high: Number | None
    ratio: Literal["token", "sequence", "sequence_mean"]


class Schedule(Received, frozen=True, kw_only=True):
    name: Literal["constant", "linear", "cosine"]
    warmup_steps: int
    stable_steps: int
    total_steps: int | None
    min_ratio: Number


class Optimizer(Received, frozen=True, kw_only=True):
    name: Literal["adamw", "adamw_8bit", "muon", "adafactor"]
    lr: Number
    betas: list[Number]
    eps: Number
    weight_decay: Number
    clip_grad_norm: Number | None
    schedule: Schedule


class Lora(Received, frozen=True, kw_only=True):
    rank: int
    alpha: Number
    dropout: Number
    targets: Literal["all_linear"] | list[str]
    quantize: Literal["nf4"] | None
    publish: Literal["merged", "adapter"]


class Offload(Received, frozen=True, kw_only=True):
    optimizer: bool
    parameters: bool


class FileEntry(Received, frozen=True, kw_only=True):
    path: str
    sha256: str
    bytes: int


class TensorEntry(Received, frozen=True, kw_only=True):
    name: str
    dtype: str
    shape: list[int]
    sha256: str


class Checkpoint(Received, frozen=True, kw_only=True):
    version: str
    dir: str
    digest: str
    world_size: int
    files: list[FileEntry]


class PublicationBase(Received, frozen=True, kw_only=True):
    dir: str
    digest: str


class PublicationProbe(Received, frozen=True, kw_only=True):
    tokens: list[int]
    logp: list[Number]


class Publication(Received, frozen=True, kw_only=True):
    version: str
    dir: str
    digest: str
    tensors: list[TensorEntry]
    files: list[FileEntry]
    base: PublicationBase | UnsetType = UNSET
    probe: PublicationProbe | UnsetType = UNSET


class Message(Received, frozen=True, kw_only=True):
    role: str
    content: str | None
    more: str | UnsetType = UNSET


class Row(Received, frozen=True, kw_only=True):
    row_id: str
    prompt: str | list[Message]
    completion: str | list[Message] | UnsetType = UNSET
    rejected: str | list[Message] | UnsetType = UNSET
    margin: Number | UnsetType = UNSET
    label: bool | UnsetType = UNSET
    answer: str | UnsetType = UNSET
    tools: str | UnsetType = UNSET
    columns: dict[str, JsonValue]


class GroupRef(Received, frozen=True, kw_only=True):
    draw: int
    slab: ArtifactRef
    index: int
    samples: list[int]


class SequenceColumn(Received, frozen=True, kw_only=True, tag_field="kind", tag="sequence"):
    values: list[Number]


class TokenColumn(Received, frozen=True, kw_only=True, tag_field="kind", tag="token"):
    artifact: ArtifactRef


class PreferencePair(Received, frozen=True, kw_only=True):
    row_id: str
    prompt: str | list[Message]
    chosen: str | list[Message]
    rejected: str | list[Message]
    margin: Number
    tools: str | UnsetType = UNSET


class TrajectoryBatch(Received, frozen=True, kw_only=True, tag_field="kind", tag="trajectories"):
    groups: list[GroupRef]
    columns: dict[str, SequenceColumn | TokenColumn]
    staleness: list[int]
    masked: list[int] | UnsetType = UNSET
    temperature: Number
    coef: dict[str, Number]
    updates: list[list[int]]


class SupervisedBatch(Received, frozen=True, kw_only=True, tag_field="kind", tag="supervised"):
    rows: list[Row]
    chat: Chat | UnsetType = UNSET
    temperature: Number
    coef: dict[str, Number]
    updates: list[list[int]]


class PreferenceBatch(Received, frozen=True, kw_only=True, tag_field="kind", tag="preference"):
    pairs: list[PreferencePair]
    chat: Chat | UnsetType = UNSET
    columns: dict[str, SequenceColumn | TokenColumn]
    temperature: Number
    coef: dict[str, Number]
    updates: list[list[int]]


class UnpairedCompletion(Received, frozen=True, kw_only=True):
    row_id: str
    prompt: str | list[Message]
    completion: str | list[Message]
    label: bool
    tools: str | UnsetType = UNSET


class UnpairedBatch(Received, frozen=True, kw_only=True, tag_field="kind", tag="unpaired"):
    completions: list[UnpairedCompletion]
    mismatched: list[int] | UnsetType = UNSET
    chat: Chat | UnsetType = UNSET
    columns: dict[str, SequenceColumn | TokenColumn]
    temperature: Number
    coef: dict[str, Number]
    updates: list[list[int]]


class Draw(Received, frozen=True, kw_only=True):
    draw: int
    row: Row
    prompt_tokens_max: int | UnsetType = UNSET
    chat: Chat | UnsetType = UNSET


class Slab(Received, frozen=True, kw_only=True):
    id: str
    draws: list[Draw]


class Sampling(Received, frozen=True, kw_only=True):
    temperature: Number
    top_p: Number
    top_k: int
    min_p: Number
    repetition_penalty: Number
    tokens_max: int
    stop: list[str]
    stop_token_ids: list[int]
    ignore_eos: bool


class Arguments(OneOf, frozen=True, kw_only=True):
    json: str | UnsetType = UNSET
    artifact: ArtifactRef | UnsetType = UNSET


class RewardProcess(Received, frozen=True, kw_only=True):
    env: list[str]
    memory_gib: Number | None
    cpu_s: Number | None
    file_mib: Number | None
    processes_max: int
    isolate: bool


class RewardModelSettings(Received, frozen=True, kw_only=True):
    path: str
    dtype: Literal["float32", "bfloat16", "float16"]
    device: Literal["auto", "cpu", "cuda"]
    threads: int
    template_arguments: dict[str, JsonValue]
    turn_end: Literal["template", "eos_token"]
    batch_tokens_max: int


class CompletionItem(Received, frozen=True, kw_only=True):
    id: str
    completion: str
    tokens: int
    token_ids: list[int]
    stop: Literal["stop", "length", "max_turns", "timeout", "error", "abort"]


class TrainerSpec(Received, frozen=True, kw_only=True):
    engine: Literal["torch", "deepspeed"]
    zero: int
    dtype: Literal["float32", "bfloat16", "float16"]
    logits_chunk_tokens: int | None
    packing: bool
    dropout: Number
    lora: Lora | None
    offload: Offload
    ema_decay: Number | None
    gradient_checkpointing: bool
    threads: int
    device: Literal["auto", "cpu", "cuda"]
    attn_implementation: str | None
    trust_remote_code: bool
    open_with_missing: bool
    open_with_unexpected: bool
    seed: int
    head: Literal["value", "score"] | None


class TrainerCreateModel(Received, frozen=True, kw_only=True):
    recipe: str
    seed: int
    dir: str


class TrainerInspectModel(Received, frozen=True, kw_only=True):
    dir: str


class TrainerMeasureRows(Received, frozen=True, kw_only=True):
    model_path: str
    use: Literal["prompt", "completion", "preference"]
    rows: ArtifactRef
    chat: Chat | None


class TrainerOpenAlgorithm(Received, frozen=True, kw_only=True):
    algorithm: ArtifactRef


class TrainerCredit(Received, frozen=True, kw_only=True):
    algorithm: ArtifactRef
    round: ArtifactRef


class TrainerLoad(Received, frozen=True, kw_only=True):
    version: str
    model_path: str
    optimizer: Optimizer
    checkpoint: Checkpoint | None
    model_digest: str | None


class TrainerTrain(Received, frozen=True, kw_only=True):
    from_: str = field(name="from")
    to: str
    batch: ArtifactRef
    loss: ArtifactRef
    optimizer: Optimizer
    micro_batch_tokens_max: int
    logits_chunk_tokens: int | None
    packing: bool
    mismatch: RatioBounds | None
    non_finite_max: int | None


class TrainerScore(Received, frozen=True, kw_only=True):
    version: str
    batch: ArtifactRef
    columns: list[Literal["old_logp", "ref_logp", "values", "bootstrap", "score"]]
    reference_path: str | None
    reference_digest: str | None
    reference_offload: bool
    micro_batch_tokens_max: int
    logits_chunk_tokens: int | None
    packing: bool


class TrainerEvaluate(Received, frozen=True, kw_only=True):
    version: str
    batch: ArtifactRef
    loss: ArtifactRef
    micro_batch_tokens_max: int
    logits_chunk_tokens: int | None
    packing: bool


class TrainerPublish(Received, frozen=True, kw_only=True):
    version: str
    dir: str
    form: Literal["merged", "adapter"] | None
    average: bool


class TrainerSave(Received, frozen=True, kw_only=True):
    version: str
    dir: str


class SamplerSpec(Received, frozen=True, kw_only=True):
    engine: Literal["huggingface", "vllm"]
    dtype: Literal["float32", "bfloat16", "float16"]
    threads: int
    device: Literal["auto", "cpu", "cuda"]
    max_model_len: int | None
    kv_cache_gib: Number | None
    vllm: dict[str, JsonValue]
    attn_implementation: str | None
    trust_remote_code: bool
    open_with_missing: bool
    open_with_unexpected: bool
    seed: int


class SamplerLoad(Received, frozen=True, kw_only=True):
    version: str
    model_path: str
    publication: Publication


class SamplerGenerate(Received, frozen=True, kw_only=True):
    version: str
    slab: Slab
    samples_per_prompt: int
    sampling: Sampling
    seed: int


class SamplerProbe(Received, frozen=True, kw_only=True):
    pass


class RewardSpec(Received, frozen=True, kw_only=True):
    processes: int


class RewardScore(Received, frozen=True, kw_only=True):
    function: str
    style: str | None
    settings: str | None
    process: RewardProcess
    timeout_ms: Number
    shared: Arguments
    items: list[CompletionItem]


class RewardIdentify(Received, frozen=True, kw_only=True):
    function: str
    style: str | None
    settings: str | None
    process: RewardProcess


class RewardScoreByModel(Received, frozen=True, kw_only=True):
    model: RewardModelSettings
    shared: Arguments
    items: list[CompletionItem]


Batch = TrajectoryBatch | SupervisedBatch | PreferenceBatch | UnpairedBatch
