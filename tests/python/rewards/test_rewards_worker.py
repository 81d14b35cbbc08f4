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
            imported = {name: args[name] for name in ("function", "process", "style", "settings")}
            said = await engine.call("identify", imported, group="reward")
            identity = said["outputs"][0]
            assert identity["unit"] == "sample"
            assert [one["code"] for one in answer["outputs"][0]["results"]] == 2 * [
                identity["code"]
            ]

    asyncio.run(asyncio.wait_for(run(), 60))


def test_identify_imports_a_function_and_never_calls_it(tmp_path: Path) -> None:
    called = tmp_path / "called"
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from pathlib import Path\n"
        f"def one(completion):\n    Path({str(called)!r}).touch()\n    return 1\n"
        f"def makes(settings):\n    return one if settings['on'] else None\n"
    )

    async def run() -> None:
        async with FakeEngine(tmp_path) as engine:
            engine.start_agent()
            await engine.start_group(
                "reward", module="holdfast_worker.rewards.worker", spec={"processes": 1}
            )
            args = {"function": f"{mine}:one", "process": PROCESS, "style": None, "settings": None}
            factory = {**args, "function": f"{mine}:makes", "settings": '{"on": true}'}
            found = [
                (await engine.call("identify", one, group="reward"))["outputs"][0]
                for one in (args, args, {**args, "style": "holdfast"}, factory)
            ]
            assert len({one["code"] for one in found}) == 2
            assert found[0] == found[1] == found[2]
            assert not called.exists()
            error = await engine.call(
                "identify", {**args, "function": f"{mine}:none"}, group="reward"
            )
            assert [one["cause"] for one in error["failures"]] == ["user_code"]

    asyncio.run(asyncio.wait_for(run(), 60))
