"""
Runs vLLM samplers and writes down what they said, for `test_sampler_vllm_engine.py`, which judges
it.

Run by the python that has vLLM: `vllm_evidence.py VARIANT FOLDER`. FOLDER has the models `base`,
`first`, `second`, `third`. An engine takes about 20 s to start, so one is used for all that it can
show, and the cold load is the second.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import sampler_fixtures as fixtures
from holdfast_worker.operation import BadDataError, Cancelled, OperationIO
from holdfast_worker.sampler.publication import probe_sequences
from holdfast_worker.sampler.worker import Worker

SAMPLINGS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0},
    "one": {"temperature": 1},
    "cool": {"temperature": 0.7},
    "nucleus": {"temperature": 0.7, "top_p": 0.8, "top_k": 20},
    "penalised": {"temperature": 0.7, "min_p": 0.02, "repetition_penalty": 1.3},
    "through": {"ignore_eos": True, "stop_token_ids": [20], "tokens_max": 40},
    "stop": {"temperature": 1, "stop": ["a", "7"], "tokens_max": 40},
}
ONE_TENSOR = (
    "model.layers.1.mlp.down_proj.weight"  # The only one in which `third` differs from `second`.
)


class Evidence:
    def __init__(self, folder: Path, dtype: str) -> None:
        self.folder = folder
        self.worker: Worker = fixtures.make_worker("vllm", dtype=dtype, device="auto", threads=1)
        self.worker.engine.extension = "vllm_stale_extension.StaleExtension"
        self.found: dict[str, Any] = {}

    def load(self, version: str) -> dict[str, Any]:
        return fixtures.load(
            self.worker, self.folder / "base", fixtures.publish(self.folder / version, version)
        )

    def probe(self) -> list[float]:
        engine = self.worker.engine
        logp = engine.probe(probe_sequences(engine.vocabulary, engine.length_max))
        return [float(value) for value in logp]

    def stale(self, names: list[str], *, repack: bool = True) -> None:
        old = fixtures.publish(self.folder / "first", "first")
        how = {"publication": old, "names": names, "repack": repack}
        self.worker.engine._call(
            self.worker.engine.llm.collective_rpc("holdfast_break", kwargs={"stale": how})
        )

    def sample(self, names: list[str]) -> None:
        for name in names:
            answer, slab = fixtures.generate(
                self.worker, fixtures.slab_arguments("second", **SAMPLINGS[name])
            )
            (self.folder / f"{name}.slab").write_bytes(slab)
            self.found[f"answer_{name}"] = answer

    def publications(self) -> None:
        """
        On noise in place: first, third, second. Then, with second resident, all that can go stale.
        """
        self.found["load_first"] = self.load("first")
        self.load("third")
        self.found["third_in_place"] = self.probe()
        self.found["load_second"] = self.load("second")
        self.found["second_in_place"] = self.probe()
        self.found["refused"] = fixtures.generate(self.worker, fixtures.slab_arguments("first"))[0]

    def crowded(self) -> None:
        """More tokens of prompts at a time than vLLM computes in a step."""
        arguments = fixtures.slab_arguments("second", draws=64, samples=8, tokens_max=3)
        for draw in arguments["slab"]["draws"]:
            draw["row"]["prompt"] = f"sort {'7' * 24}{draw['draw']}:"
        answer, slab = fixtures.generate(self.worker, arguments)
        (self.folder / "crowded.slab").write_bytes(slab)
        self.found["answer_crowded"] = answer
        config = self.worker.engine.llm.vllm_config.scheduler_config
        self.found["step_tokens"] = config.max_num_batched_tokens
        self.found["at_a_time"] = config.max_num_seqs

    def stale_tensors(self) -> None:
        names = [
            entry["name"] for entry in fixtures.publish(self.folder / "second", "second")["tensors"]
        ]
        self.found["stale"] = {}
        for name in names:
            self.stale([name])
            self.worker.engine.replace(fixtures.publish(self.folder / "second", "second"))
            self.found["stale"][name] = self.probe()
        self.stale([])
        self.worker.engine.replace(fixtures.publish(self.folder / "first", "first"))
        self.stale([], repack=False)
        self.worker.engine.replace(fixtures.publish(self.folder / "second", "second"))
        self.found["not_repacked"] = self.probe()
        self.stale([])
        self.worker.engine.replace(fixtures.publish(self.folder / "second", "second"))
        self.found["second_again"] = self.probe()

    def cold_verdict(self) -> None:
        """
        Third, with the one tensor that changed left as in second. Ends in an engine that loaded
        third cold.
        """
        how = {
            "publication": fixtures.publish(self.folder / "second", "second"),
            "names": [ONE_TENSOR],
            "repack": True,
        }
        self.worker.engine._call(
            self.worker.engine.llm.collective_rpc("holdfast_break", kwargs={"stale": how})
        )
        try:
            self.load("third")
            self.found["verdict"] = None
        except BadDataError as error:
            self.found["verdict"] = str(error)
        self.found["after_verdict"] = fixtures.generate(
            self.worker, fixtures.slab_arguments("third")
        )[0]
        self.found["third_cold"] = self.probe()

    def cancelled(self) -> None:
        """A slab given up in its middle leaves an engine that publishes and samples on."""
        io = OperationIO.alone()
        io.send_progress = lambda message: io.cancelled.set()
        arguments = fixtures.slab_arguments("second", draws=32, samples=8, tokens_max=400)
        try:
            self.worker.operations["generate"](arguments, io)
            self.found["cancelled"] = False
        except Cancelled:
            self.found["cancelled"] = True
        self.found["load_after_cancel"] = self.load("first")["version"]
        self.found["answer_after_cancel"] = fixtures.generate(
            self.worker, fixtures.slab_arguments("first")
        )[0]

    def corrupted(self) -> None:
        """A manifest with a wrong hash reaches the loader: it is refused inside vLLM's process."""
        broken = fixtures.publish(self.folder / "second", "second")
        broken["tensors"][5]["sha256"] = "0" * 64
        try:
            self.worker.engine.replace(broken)
            self.found["corrupted"] = None
        except Exception as error:  # What vLLM makes of it is what is looked at.
            self.found["corrupted"] = str(error)


def main() -> None:
    variant, folder = sys.argv[1], Path(sys.argv[2])
    evidence = Evidence(folder, "bfloat16" if variant == "bfloat16" else "float32")
    evidence.found["boot"] = evidence.worker.boot()
    evidence.publications()
    if variant == "bfloat16":
        evidence.sample(["one"])
        evidence.cancelled()
    else:
        evidence.sample(list(SAMPLINGS))
        evidence.crowded()
        evidence.stale_tensors()
        evidence.cold_verdict()
        evidence.corrupted()
    (folder / "evidence.json").write_text(json.dumps(evidence.found))
    print("ready", flush=True)
    sys.stdin.read()  # The test kills the process group while vLLM's processes live.


if __name__ == "__main__":
    main()
