"""The trainer as it really runs: two DeepSpeed ranks under an agent that an engine talks to."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fake_engine import FakeEngine
from holdfast_worker.process_table import descendants
from listening import LOOPBACK, listening
from trainer_harness import (
    OPTIMIZER,
    POLICY_LOSS,
    SPEC,
    USUAL,
    Artifacts,
    deepspeed_python,
    trajectory_batch,
)


def test_two_ranks_under_an_agent_train_and_publish_and_name_bad_input(tmp_path: Path) -> None:
    python = deepspeed_python()
    artifacts = Artifacts(tmp_path / "artifacts")
    train = {
        **USUAL["train"],
        **{"from": "v0", "to": "v1"},
        "batch": artifacts.put_json(trajectory_batch(artifacts, [[9, 7, 5, 6]] * 2)),
        "loss": artifacts.put_json(POLICY_LOSS),
        "optimizer": OPTIMIZER,
        "micro_batch_tokens_max": 32,
    }
    model = str(tmp_path / "model")
    load = {
        **USUAL["load"],
        "version": "v0",
        "model_path": model,
        "optimizer": OPTIMIZER,
        "checkpoint": None,
    }

    async def test() -> None:
        async with FakeEngine(tmp_path, grace_ms=20_000) as engine:
            engine.start_agent()
            await engine.start_group(
                module="holdfast_worker.trainer.worker",
                python=python,
                start_timeout_ms=90_000,
                ranks=2,
                spec={**SPEC, "engine": "deepspeed", "zero": 2},
            )
            await engine.call("create_model", {"recipe": "tiny_qwen", "seed": 1, "dir": model})
            loaded = await engine.call("load", load)
            assert [output["numerics"]["world_size"] for output in loaded["outputs"]] == [2, 2]
            group = [engine.agents[-1].pid, *descendants(engine.agents[-1].pid)]
            sockets = listening(group)
            assert len(sockets) >= 3, sockets  # The store's, and one of gloo for each rank.
            assert set(sockets) <= LOOPBACK, sockets
            trained = await engine.call("train", train)
            assert trained["outputs"][0] == trained["outputs"][1]
            asked = {**USUAL["publish"], "version": "v1", "dir": str(tmp_path / "out")}
            published = (await engine.call("publish", asked))["outputs"][0]
            assert {"version", "dir", "digest", "tensors", "files", "probe"} == set(published)
            refused = await engine.call("inspect_model", {"dir": str(tmp_path / "nothing")})
            assert [failure["cause"] for failure in refused["failures"]] == ["bad_data", "bad_data"]
            assert "does not exist" in refused["failures"][0]["message"]

    asyncio.run(asyncio.wait_for(test(), 120))
