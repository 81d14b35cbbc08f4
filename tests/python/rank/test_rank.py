"""A rank alone: a real process, and the test in the agent's place."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_engine import PACKAGES, ROOT, alive
from holdfast_worker.rank.channel import CHANNEL_VARIABLE, GUARD_VARIABLE, Channel

SOURCE = """
import sys, os
class Worker:
    def __init__(self, context):
        self.context = context
        self.operations = {
            "nan": lambda args, io: {"loss": float("nan")},
            "not_json": lambda args, io: {"a": object()},
            "leave": lambda args, io: sys.exit(3),
            "noise": self.noise,
        }
    def boot(self):
        return {}
    def noise(self, args, io):
        print("x" * 100_000)
        os.write(1, b"\\x00\\xff" * 1000)
        print("y", file=sys.stderr)
        return {"quiet": False}
"""


class Agent:
    """The agent's ends of a rank's channel and guard pipe."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def start(
        self, module: str = "echo_worker", spec: dict[str, Any] | None = None, **context: Any
    ) -> dict[str, Any]:
        import socket

        ours, theirs = socket.socketpair()
        guard, self.alive_fd = os.pipe()
        env = {
            **os.environ,
            "PYTHONPATH": f"{PACKAGES}:{ROOT / 'tests' / 'python'}:{self.directory}",
            CHANNEL_VARIABLE: str(theirs.fileno()),
            GUARD_VARIABLE: str(guard),
        }
        with (self.directory / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "holdfast_worker.rank.rank"],
                env=env,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno(), guard],
                start_new_session=True,
            )
        theirs.close()
        os.close(guard)
        self.channel = Channel(ours)
        fields = {
            "role": "trainer",
            "group": "trainer",
            "generation": 1,
            "rank": 0,
            "world_size": 1,
            "artifacts_dir": "a",
        }
        self.channel.send(
            {
                "type": "start",
                "module": module,
                "context": {**fields, "spec": spec or {}, **context},
            }
        )
        return self.channel.receive()

    def ask(self, op: str, args: dict[str, Any] | None = None) -> None:
        self.channel.send(
            {
                "type": "task",
                "task": "t",
                "key": "k",
                "attempt": 1,
                "op": op,
                "args": {"json": json.dumps(args or {})},
            }
        )

    def call(self, op: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
        self.ask(op, args)
        return self.channel.receive()

    def end(self) -> None:
        os.close(self.alive_fd)
        self.channel.close()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    (tmp_path / "odd_worker.py").write_text(SOURCE)
    agent = Agent(tmp_path)
    yield agent
    agent.end()


def test_rank_answers_ready_then_results(agent: Agent) -> None:
    assert agent.start(spec={"zero": 2})["info"]["echo"] == {"zero": 2}
    assert (
        agent.call("echo", {"a": [1]})["output"]
        == '{"rank": 0, "args": {"a": [1]}, "key": "k", "attempt": 1}'
    )


@pytest.mark.parametrize(
    ("op", "exception", "says"),
    [
        ("nan", "ValueError", "not JSON compliant"),
        ("not_json", "TypeError", "not JSON serializable"),
        ("leave", "SystemExit", "3"),
        ("fly", "LookupError", "no such operation: it has leave, nan, noise, not_json"),
    ],
)
def test_rank_reports_what_no_result_can_be_made_of_and_lives(
    agent: Agent, op: str, exception: str, says: str
) -> None:
    agent.start("odd_worker")
    failure = agent.call(op)["failure"]
    assert (failure["exception"], failure["cause"]) == (exception, "other")
    assert says in failure["message"]
    assert agent.call("noise")["type"] == "result"


def test_what_an_operation_prints_reaches_the_log_and_not_the_channel(agent: Agent) -> None:
    agent.start("odd_worker")
    assert agent.call("noise")["output"] == '{"quiet": false}'
    assert b"\x00\xff" in (agent.directory / "log").read_bytes()


def test_rank_reports_a_module_that_cannot_be_imported(agent: Agent) -> None:
    message = agent.start("holdfast_worker.no_such_role")
    assert message["type"] == "error" and message["task"] is None
    assert message["failure"]["cause"] == "import_error"
    assert "no_such_role" in message["failure"]["message"]


def test_rank_sees_a_cancel_while_its_main_thread_works(agent: Agent) -> None:
    agent.start()
    agent.ask("sleep_until_cancelled")
    assert agent.channel.receive()["phase"] == "sleeping"
    agent.channel.send({"type": "cancel", "task": "t"})
    assert agent.channel.receive()["failure"]["cause"] == "cancelled"
    assert agent.call("echo")["type"] == "result"


def test_progress_is_thinned_but_its_end_is_said(agent: Agent) -> None:
    agent.start()
    agent.ask("progress", {"steps": 5_000})
    messages = [agent.channel.receive()]
    while messages[-1]["type"] == "progress":
        messages.append(agent.channel.receive())
    assert messages[-1]["type"] == "result"
    assert 2 <= len(messages) - 1 <= 12
    assert (messages[-2]["done"], messages[-2]["total"]) == (5_000, 5_000)


def test_rank_ends_with_0_when_told(agent: Agent) -> None:
    agent.start()
    agent.channel.send({"type": "shutdown"})
    assert agent.process.wait(timeout=10) == 0


@pytest.mark.parametrize("busy_with", ["nothing", "hold_gil", "stopped"])
def test_rank_and_its_children_die_with_the_agent_whatever_the_rank_does(
    agent: Agent, busy_with: str
) -> None:
    agent.start(spec={"children": 2})
    agent.ask("pids")
    import json

    children = json.loads(agent.channel.receive()["output"])["children"]
    if busy_with == "hold_gil":
        agent.ask("hold_gil", {"ms": 60_000})
        agent.channel.receive()
        time.sleep(0.2)  # The operation takes the interpreter 50 ms after its message.
    if busy_with == "stopped":
        os.kill(agent.process.pid, signal.SIGSTOP)
    assert all(map(alive, children))
    agent.channel.close()
    os.close(agent.alive_fd)
    agent.alive_fd = os.open(os.devnull, os.O_RDONLY)
    agent.process.wait(timeout=5)
    deadline = time.monotonic() + 5
    while any(map(alive, children)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(alive, children))
