"""The agent as a real process with real ranks, against a tiny hub."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from fake_engine import TOKEN, FakeEngine, alive, until_dead
from holdfast_worker.wire.protocol import FRAME_BYTES_MAX
from served_agent import exit_code, pids, ready_with_children, served


def test_ranks_know_their_place_and_no_secret(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent(
            DATABASE_URL="x", HOLDFAST_TOKEN="x", MY_STORE="postgres://u:p@h/d", HARMLESS="kept"
        )
        await engine.start_group(ranks=2, role="trainer")
        outputs = (await engine.call("environment"))["outputs"]
        envs = [output["env"] for output in outputs]
        assert [env["RANK"] for env in envs] == [env["LOCAL_RANK"] for env in envs] == ["0", "1"]
        assert [env["WORLD_SIZE"] for env in envs] == ["2", "2"]
        assert (
            envs[0]["MASTER_PORT"] == envs[1]["MASTER_PORT"]
            and envs[0]["MASTER_ADDR"] == "127.0.0.1"
        )
        assert envs[0]["HOLDFAST_ARTIFACTS"] == str(engine.home / "artifacts")
        assert envs[0]["HARMLESS"] == "kept"
        assert not {"DATABASE_URL", "HOLDFAST_TOKEN", "MY_STORE"} & set(envs[0])
        assert TOKEN not in json.dumps(outputs) and str(engine.home / "hub.json") not in json.dumps(
            outputs
        )

    served(tmp_path, test)


def test_result_holds_every_ranks_output_in_order_and_rank_0s_blobs(tmp_path: Path) -> None:
    sizes = [3, 0, 2 * FRAME_BYTES_MAX + 5]

    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.start_group(ranks=2)
        task = await engine.task("echo", {"x": [1.5, None, "ü"]}, key="round/1/train", attempt=2)
        assert (await engine.next("accepted"))["task"] == task["task"]
        answer = await engine.answer(task["task"])
        expected = {"args": {"x": [1.5, None, "ü"]}, "key": "round/1/train", "attempt": 2}
        assert answer["outputs"] == [{"rank": 0, **expected}, {"rank": 1, **expected}]
        answer = await engine.call("blob", {"sizes": sizes})
        blobs = [bytes(engine.blobs[(answer["task"], i)]) for i in range(3)]
        assert blobs == [bytes([i]) * size for i, size in enumerate(sizes)]
        assert answer["blobs"] == [
            {"sha256": hashlib.sha256(b).hexdigest(), "bytes": len(b)} for b in blobs
        ]
        assert max(engine.frame_sizes) <= FRAME_BYTES_MAX

    served(tmp_path, test)


def test_progress_and_heartbeats_name_their_rank(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        state = await engine.start_group()
        task = await engine.task("progress", {"steps": 4})
        progress = await engine.next("progress", lambda m: m["done"] == 4)
        assert progress == {
            "type": "progress",
            "task": task["task"],
            "rank": 0,
            "phase": "steps",
            "done": 4,
            "total": 4,
            "metrics": {"loss": 0.25},
        }
        heartbeat = await engine.next(
            "heartbeat", lambda m: m["groups"][0]["ranks"][0]["state"] == "ready"
        )
        assert pids(heartbeat["groups"][0]) == pids(state)

    served(tmp_path, test)


def test_heartbeats_go_on_while_a_rank_holds_the_gil(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.start_group()
        task = await engine.task("hold_gil", {"ms": 700})
        await engine.next("progress")
        before = len(engine.seen)
        await engine.answer(task["task"])
        beats = [m for m in engine.seen[before:] if m["type"] == "heartbeat"]
        assert len(beats) >= 5, len(beats)
        assert beats[2]["groups"][0]["ranks"][0]["state"] == "busy"

    served(tmp_path, test)


def test_a_task_runs_once_however_often_it_is_delivered(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.start_group()
        engine.acknowledge = False
        task = await engine.task("count", task="same")
        await engine.answer("same")
        await engine.raw(task)
        await engine.send({key: value for key, value in task.items() if key != "seq"})
        assert (await engine.call("count"))["outputs"] == [{"count": 2}]
        assert [
            m["outputs"] for m in engine.seen if m["type"] == "result" and m["task"] == "same"
        ] == [[{"count": 1}]]

    served(tmp_path, test)


def test_a_repeated_start_changes_nothing_and_says_how_it_went(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        first = await engine.start_group()
        again = await engine.start_group()
        assert pids(again) == pids(first)
        assert again["info"] == first["info"]

    served(tmp_path, test)


def test_the_old_generation_is_dead_before_the_new_one_starts(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        old = await ready_with_children(engine, ranks=2)
        hanging = await engine.task("hang")
        await engine.next("progress")
        await engine.send(engine.start_message(generation=2, ranks=2))
        stopped = await engine.next("group")
        assert (stopped["generation"], stopped["state"]) == (1, "stopped")
        assert not any(map(alive, old))
        assert (await engine.answer(hanging["task"]))["type"] == "error"
        assert (await engine.next("group"))["generation"] == 2
        assert (await engine.call("echo", generation=2))["type"] == "result"
        failed = await engine.call("echo", generation=1)
        assert "generation 2 (ready)" in failed["failures"][0]["message"]

    served(tmp_path, test)


def test_a_lower_epoch_is_answered_fenced_and_does_nothing(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.start_group()
        await engine.raw({"type": "shutdown", "epoch": 2, "seq": 99})
        assert (await engine.next("fenced")) == {"type": "fenced", "epoch": 3}
        assert (await engine.call("echo"))["type"] == "result"

    served(tmp_path, test, epoch=3)


def test_a_crash_ends_the_whole_group_and_names_the_rank_that_died(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        all_pids = await ready_with_children(engine, ranks=2)
        answer = await engine.call("crash", {"rank": 1, "signal": "SIGTERM"})
        assert [(f["rank"], f["cause"], f["signal"]) for f in answer["failures"]] == [
            (1, "signal", "SIGTERM")
        ]
        assert "about to crash" in answer["failures"][0]["log_tail"]
        assert answer["failures"][0]["log_path"].endswith("logs/trainer.rank1.gen1.log")
        state = await engine.next("group")
        assert state["state"] == "failed" and state["failures"] == answer["failures"]
        assert not any(map(alive, all_pids))
        assert "generation 1 (failed)" in (await engine.call("echo"))["failures"][0]["message"]

    served(tmp_path, test)


def test_an_exit_is_reported_with_its_code(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.start_group()
        failure = (await engine.call("exit_code", {"code": 17}))["failures"][0]
        assert (failure["cause"], failure["exit_code"], failure["signal"]) == ("exit", 17, None)

    served(tmp_path, test)


def test_all_ranks_reports_are_gathered_so_that_the_root_can_be_told_from_its_cascade(
    tmp_path: Path,
) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.start_group(ranks=2)
        answer = await engine.call("raise_peer", {"root": 1})
        assert [(f["rank"], f["cause"], f["exception"]) for f in answer["failures"]] == [
            (0, "other", "RuntimeError"),
            (1, "other", "OSError"),
        ]
        assert (await engine.next("group"))["state"] == "failed"

    served(tmp_path, test)


@pytest.mark.parametrize(
    ("ranks", "op", "args", "cause", "lives"),
    [
        (1, "raise_user_code", {}, "user_code", True),
        (2, "raise_bad_data", {}, "bad_data", True),
        (2, "raise_user_code", {"rank": 1}, "user_code", False),
        (2, "raise_user_code", {"rank": 1, "others_s": 0}, "user_code", False),
        (1, "raise_other", {}, "other", False),
        (1, "raise_oom", {}, "out_of_memory", False),
    ],
)
def test_a_group_survives_a_failure_only_if_no_rank_can_have_changed(
    tmp_path: Path, ranks: int, op: str, args: dict[str, Any], cause: str, lives: bool
) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.start_group(ranks=ranks)
        answer = await engine.call(op, args)
        assert answer["type"] == "error"
        assert {failure["cause"] for failure in answer["failures"]} == {cause}
        if lives:
            assert (await engine.call("echo"))["type"] == "result"
        else:
            assert (await engine.next("group"))["state"] == "failed"

    served(tmp_path, test)


def test_cancel_ends_an_operation_and_leaves_the_group(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.start_group(ranks=2)
        task = await engine.task("sleep_until_cancelled")
        queued = await engine.task("sleep_until_cancelled")
        await engine.next("progress")
        for item in (queued, task):
            await engine.send({"type": "cancel", "task": item["task"]})
        for item in (task, queued):
            failures = (await engine.answer(item["task"]))["failures"]
            assert {failure["cause"] for failure in failures} == {"cancelled"}
        assert (await engine.call("echo"))["type"] == "result"

    served(tmp_path, test)


@pytest.mark.parametrize(
    ("mode", "cause", "says"),
    [
        ("import_error", "import_error", "a_module_that_is_not_there"),
        ("raise", "other", "the boot was asked to fail"),
        ("exit", "exit", "exit code 7"),
        ("hang", "timeout", "not ready after 900 ms"),
    ],
)
def test_a_rank_that_does_not_come_up_fails_its_group_with_the_cause(
    tmp_path: Path, mode: str, cause: str, says: str
) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        limit = 900 if mode == "hang" else 15_000
        spec = {"boot": mode, "boot_rank": 1, "children": 1}
        await engine.send(engine.start_message(ranks=2, spec=spec, start_timeout_ms=limit))
        state = await engine.next("group")
        assert state["state"] == "failed"
        assert [(f["rank"], f["cause"]) for f in state["failures"]] == [(1, cause)]
        assert says in state["failures"][0]["message"]
        assert "booting rank 1 of trainer" in state["failures"][0]["log_tail"]
        await until_dead(pids(state), within_s=0.5)

    served(tmp_path, test)


def test_a_python_that_is_not_there_is_one_clear_sentence(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.send(engine.start_message(python="/nowhere/bin/python"))
        failure = (await engine.next("group"))["failures"][0]
        assert failure["message"].startswith("Cannot start /nowhere/bin/python: ")

    served(tmp_path, test)


def test_a_taken_rendezvous_port_is_replaced(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent()
        await engine.start_group(spec={"boot": "port_taken_once"})
        port = (await engine.call("environment"))["outputs"][0]["env"]["MASTER_PORT"]
        assert port != (engine.home / "logs" / "port_was_taken").read_text()

    served(tmp_path, test)


def test_fault_kill_ends_a_rank_between_its_work_and_its_result_once_per_run(
    tmp_path: Path,
) -> None:
    async def test(engine: FakeEngine) -> None:
        faults = {
            "HOLDFAST_FAULT": "kill:trainer.1@op:2",
            "HOLDFAST_FAULTS_DIR": str(tmp_path / "faults"),
        }
        engine.start_agent(**faults, HOLDFAST_EVENTS=str(tmp_path / "events"))
        await engine.start_group(ranks=2)
        failures = (await engine.call("echo"))["failures"]
        assert [(f["rank"], f["signal"]) for f in failures] == [(1, "SIGKILL")]
        assert (await engine.next("group"))["state"] == "failed"
        await engine.start_group(ranks=2, generation=2)
        assert (await engine.call("echo", generation=2))["type"] == "result"
        events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
        assert [e["n"] for e in events if (e["place"], e["rank"]) == ("trainer", 1)] == [1, 2, 1, 2]
        assert {e["event"] for e in events if e["place"] == "agent"} == {"frame"}

    served(tmp_path, test)


def test_agent_refuses_a_fault_it_cannot_read(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        engine.start_agent(HOLDFAST_FAULT="kill:agent@noon:1")
        assert await exit_code(engine) == 2
        assert (
            "Cannot read HOLDFAST_FAULT 'kill:agent@noon:1'" in (tmp_path / "agent.log").read_text()
        )

    served(tmp_path, test)


def test_agent_imports_no_torch(tmp_path: Path) -> None:
    async def test(engine: FakeEngine) -> None:
        agent = engine.start_agent()
        await engine.start_group()
        maps = Path(f"/proc/{agent.pid}/maps").read_text()
        assert "site-packages/" in maps and "site-packages/torch/" not in maps

    served(tmp_path, test)
