"""The reward role behind an agent."""

import asyncio
from pathlib import Path

from fake_engine import FakeEngine
from reward_files import PROCESS, outcomes


def test_the_reward_role_scores_through_an_agent_and_survives_a_broken_file(
    tmp_path: Path, file: Path
) -> None:
    async def run() -> None:
        async with FakeEngine(tmp_path) as engine:
            engine.start_agent()
            state = await engine.start_group(
                "reward", module="holdfast_worker.rewards.worker", spec={"processes": 2}
            )
            assert state["info"]["processes"] == 2
            args = {
                "function": f"{file}:length",
                "process": PROCESS,
                "style": None,
                "settings": None,
                "shared": {"json": '{"prompt": "p", "columns": {}}'},
                "items": [
                    {"id": "0", "completion": "a", "tokens": 1, "token_ids": [7], "stop": "stop"},
                    {
                        "id": "1",
                        "completion": "bb",
                        "tokens": 2,
                        "token_ids": [7, 8],
                        "stop": "stop",
                    },
                ],
                "timeout_ms": 5_000,
            }
            (tmp_path / "bad.py").write_text("import nothing_like_this")
            error = await engine.call(
                "score", {**args, "function": f"{tmp_path / 'bad.py'}:f"}, group="reward"
            )
            assert [(f["cause"], f["exception"]) for f in error["failures"]] == [
                ("user_code", "UserCodeError")
            ]
            answer = await engine.call("score", args, group="reward")
            assert outcomes(answer["outputs"][0]["results"]) == [("0", "ok", 0.1), ("1", "ok", 0.2)]
            none = await engine.call("score", {**args, "items": []}, group="reward")
            identity = none["outputs"][0]["identity"]
            assert (none["outputs"][0]["results"], identity["unit"]) == ([], "sample")
            assert [one["code"] for one in answer["outputs"][0]["results"]] == 2 * [
                identity["code"]
            ]

    asyncio.run(asyncio.wait_for(run(), 60))
