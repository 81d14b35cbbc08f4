"""The sampler's operations (`workers/roles/sampler.ts`), whatever engine is behind them."""

from __future__ import annotations

import time

from holdfast_worker import weights
from holdfast_worker.model_hub.cache import model_directory
from holdfast_worker.operation import BadDataError, OperationIO, RankContext
from holdfast_worker.prompts import encode_prompt
from holdfast_worker.sampler import publication as publications
from holdfast_worker.sampler.adapters import check_base
from holdfast_worker.sampler.engine import Engine, EngineInfo, Watch
from holdfast_worker.sampler.slab import PromptGroup, SampleRequest, pack_slab
from holdfast_worker.sampler.stopping import turn_ends
from holdfast_worker.wire.answers import (
    NotResident,
    SamplerGenerateAnswer,
    SamplerLoadAnswer,
    SamplerProbeAnswer,
)
from holdfast_worker.wire.operation import RankOperation, typed
from holdfast_worker.wire.received import decode, plain
from holdfast_worker.wire.types import (
    Draw,
    Publication,
    SamplerGenerate,
    SamplerLoad,
    SamplerProbe,
    SamplerSpec,
)

SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "tokens_max",
    "stop",
    "min_p",
    "repetition_penalty",
    "stop_token_ids",
    "ignore_eos",
)  # Their order in a slab, whose bytes are hashed.


def make_engine(spec: SamplerSpec) -> Engine:
    """The engine named by the group's spec."""
    if spec.engine == "huggingface":
        from holdfast_worker.sampler.huggingface import HuggingFaceEngine

        return HuggingFaceEngine(spec)
    from holdfast_worker.sampler.vllm_engine import VllmEngine

    return VllmEngine(spec)


class SamplerInfo(EngineInfo):
    """What a sampler is, as its group says."""

    repeats: str


class Worker:
    """Holds one version's weights, or none: it samples only at proved versions."""

    def __init__(self, context: RankContext) -> None:
        self.spec = decode(SamplerSpec, context.spec)
        self.engine = make_engine(self.spec)
        self.opened: str | None = (
            None  # The model, or adapter's base, whose publications the engine accepts.
        )
        self.version: str | None = (
            None  # The resident version; None from the first byte of a load until its proof.
        )
        self.proof: publications.Proof | None = (
            None  # Of what is in the engine now; None: not known.
        )
        # The answer that the resident version's load gave.
        self.loaded: SamplerLoadAnswer | None = None
        self.operations: dict[str, RankOperation] = {
            "load": typed(SamplerLoad, self.load),
            "generate": typed(SamplerGenerate, self.generate),
            "probe": typed(SamplerProbe, self.probe),
        }

    def boot(self) -> SamplerInfo:
        """Imports the engine. The model comes with `load`."""
        return {**self.engine.boot(), "repeats": self.engine.repeats}

    def load(self, args: SamplerLoad, io: OperationIO) -> SamplerLoadAnswer:
        """
        Prepares (files checked, architecture open), transfers, proves, commits. Safe to run twice.
        """
        started = time.monotonic()
        version, publication = args.version, args.publication
        if publication.version != version:
            raise BadDataError(
                f"Cannot load version {version} because the publication is of {publication.version}"
            )
        if (
            self.loaded
            and self.version == version
            and self.proof
            and self.proof.digest == publication.digest
        ):
            return self.loaded
        io.progress("load", 0, 3)
        weights.verify_files(publication.dir, publication.files)
        previous_version = self.version
        opened = self._open(args.model_path, publication)
        previous = self.proof or publications.take_proof(self.engine, None)
        io.progress("load", 1, 3)
        # A failure from here on leaves weights of no version: the next load opens the model again.
        self.version = self.proof = self.loaded = self.opened = None
        count = self.engine.replace(publication)
        io.progress("load", 2, 3)
        proof = publications.prove(self.engine, publication, previous)
        tolerance = publications.tolerance_of(self.spec, publication)
        publications.compare_with_trainer(self.engine, publication, tolerance=tolerance)
        self.version, self.proof, self.opened = version, proof, opened
        self.loaded = {
            "version": version,
            "probe": publications.probe_record(proof.short),
            "previous_probe": publications.probe_record(previous.short)
            if previous_version
            else None,
            "tensors_loaded": count,
            "seconds": time.monotonic() - started,
        }
        return self.loaded

    def _open(self, model_path: str, publication: Publication) -> str:
        """
        The architecture, or an adapter's base model, for publications of this kind. What is open
        now, as text.
        """
        base = publication.base
        wanted = f"adapter of {base.dir} {base.digest}" if base else f"model {model_path}"
        if self.opened == wanted:
            return wanted
        self.version = self.proof = self.loaded = self.opened = None
        if not base:
            directory = model_directory(model_path)
            weights.check_model_directory(directory)
            self.engine.open_noise(str(directory))
        else:
            check_base(base)
            self.engine.open_adapter(publication)
        self.opened = wanted
        return wanted

    def generate(
        self, args: SamplerGenerate, io: OperationIO
    ) -> SamplerGenerateAnswer | NotResident:
        """Samples one slab at exactly the requested version; its bytes are blob 0."""
        version = args.version
        if self.version is None or self.version != version:
            return {"not_resident": self.version}
        started = time.monotonic()
        sampling = args.sampling
        recorded = {name: getattr(sampling, name) for name in SAMPLING}
        for token in sampling.stop_token_ids:
            if token >= self.engine.vocabulary:
                raise BadDataError(
                    f"Cannot stop at token {token} because the model has "
                    f"{self.engine.vocabulary} tokens. Fix: correct stop_token_ids in a new run"
                )
        draws = args.slab.draws
        groups = [self._group(draw) for draw in draws]
        prompts = [plain(draw.row.prompt) for draw in draws]
        chat = plain(draws[0].chat)  # All are of one split.
        ends = turn_ends(self.engine.tokenizer, prompts, chat)
        requests = [
            SampleRequest(group.draw, sample, group.prompt)
            for group in groups
            for sample in range(args.samples_per_prompt)
        ]
        watch = Watch(
            progress=lambda tokens, total: io.progress("generate", tokens, total),
            check=io.check_cancelled,
        )
        completions = iter(
            self.engine.sample(requests, sampling, seed=args.seed, watch=watch, ends=ends)
        )
        for group in groups:
            group.completions = [next(completions) for _ in range(args.samples_per_prompt)]
        io.blob(pack_slab(args.slab.id, groups, version=version, sampling=recorded))
        return {
            "version": version,
            "groups": len(groups),
            "samples": len(requests),
            "tokens": sum(
                len(completion.tokens) for group in groups for completion in group.completions
            ),
            "prompt_tokens": sum(len(request.prompt) for request in requests),
            "seconds": time.monotonic() - started,
        }

    def _group(self, draw: Draw) -> PromptGroup:
        row = draw.row
        text, tokens = encode_prompt(
            self.engine.tokenizer, plain(row.prompt), plain(draw.chat), tools=plain(row.tools)
        )
        most = plain(draw.prompt_tokens_max)
        if most is not None and len(tokens) > most:
            tokens = tokens[-most:]
            text = self.engine.tokenizer.decode(tokens)
        if len(tokens) >= self.engine.length_max:
            raise BadDataError(
                f"Cannot sample row '{row.row_id}' because its prompt has {len(tokens)} tokens: "
                f"the model takes at most {self.engine.length_max} with the completion. Fix: bound prompts by "
                "data.prompt_tokens_max and data.on_long_prompt in a new run"
            )
        return PromptGroup(draw.draw, row.row_id, text, tokens)

    def probe(self, args: SamplerProbe, io: OperationIO) -> SamplerProbeAnswer:
        """The probe of the weights in the engine, taken now."""
        if self.opened is None:
            raise BadDataError("Cannot probe because no model is open: load a version first")
        return publications.probe_record(publications.take_proof(self.engine, None).short)

    def close(self) -> None:
        """Ends what the engine started (vLLM's processes). The rank calls it before it exits."""
        self.engine.close()
