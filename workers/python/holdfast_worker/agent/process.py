"""
One rank's process as the agent holds it: its environment, its start, its end and what the machine
says of that.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast_worker.machine import kernel_lines, memory_kills
from holdfast_worker.process_table import (
    alive_in_group,
    carriers,
    descendants,
    process_start,
    process_state,
    reap,
)
from holdfast_worker.rank.channel import (
    CHANNEL_VARIABLE,
    GUARD_VARIABLE,
    AsyncChannel,
    ChannelClosed,
)
from holdfast_worker.rank.failures import report
from holdfast_worker.rank.frames import FromRank, RankError, ToRank, read_from_rank
from holdfast_worker.rank.log import RankLog, RotatingLog
from holdfast_worker.wire.frames import RankState, RankStateName

PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
# In every process of a generation, so that one that left the process group is found.
GROUP_VARIABLE = "HOLDFAST_GROUP"
SECRET_NAMES = re.compile(r"^(HOLDFAST_(HUB|TOKEN|STORE).*|DATABASE_URL|PG[A-Z]+)$")
SECRET_VALUES = re.compile(r"^postgres(ql)?://", re.IGNORECASE)
# Models bring code. A reward's process gets what its `env` names (`rewards/pool_process.py`).
HUB_TOKENS = re.compile(r"^(HF_TOKEN|HUGGING_?FACE_?HUB_(API_)?TOKEN|HF_API_TOKEN)$")
FOREIGN_NAMES = (
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "__PYVENV_LAUNCHER__",
)  # The agent's own Python, not the rank's.
KILL_WAIT_S = 5.0
# A killed process gives its GPU memory back before it is gone, which takes seconds where it holds
# much. The next one must not start into what is still taken.
DEAD_WAIT_S = 30.0
LOG_END_S = 1.0  # All who could print are dead: this is for a process that has left its group.


def rank_environment(
    base: Mapping[str, str],
    group_variables: Mapping[str, str],
    rank_variables: Mapping[str, str],
    *,
    keeps_hub_tokens: bool = False,
) -> dict[str, str]:
    """
    What a rank sees: the agent's environment, then the message's, then the rank's place. Ranks run
    user code, so tokens and database addresses stay behind.
    """
    env = {name: value for name, value in base.items() if name not in FOREIGN_NAMES}
    env.update(group_variables)
    env = {n: v for n, v in env.items() if not SECRET_NAMES.match(n) and not SECRET_VALUES.match(v)}
    if not keeps_hub_tokens:
        env = {name: value for name, value in env.items() if not HUB_TOKENS.match(name)}
    paths = [PACKAGE_ROOT, *filter(None, [env.get("PYTHONPATH")])]
    return {
        **env,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        **rank_variables,
    }


class RankProcess:
    """A started rank. `returncode` is None while it runs, negative for a signal."""

    def __init__(self, rank: int, *, python: str, env: Mapping[str, str], log_path: Path) -> None:
        self.rank = rank
        self.log_path = str(log_path)
        self.state: RankStateName = "starting"
        self.returncode: int | None = None
        self._below: set[int] = set()  # What it had started when it was killed.
        self._nonce = f"{GROUP_VARIABLE}={env[GROUP_VARIABLE]}".encode()
        self._log = RankLog(RotatingLog(log_path))
        ours, theirs = socket.socketpair()
        self._socket = ours
        self.channel: AsyncChannel | None = None
        path = os.pathsep.join([str(Path(python).parent), env.get("PATH", os.defpath)])
        self._memory_kills = memory_kills()
        self._gpus = env.get("CUDA_VISIBLE_DEVICES")
        guard, self._alive = (
            os.pipe()
        )  # Never written to: the guard wakes when this agent's end closes.
        channel_variables = {
            "PATH": path,
            CHANNEL_VARIABLE: str(theirs.fileno()),
            GUARD_VARIABLE: str(guard),
        }
        try:
            with theirs:
                self._popen = subprocess.Popen(
                    [python, "-m", "holdfast_worker.rank.rank"],
                    env={**env, **channel_variables},
                    stdin=subprocess.DEVNULL,
                    stdout=self._log.inlet,
                    stderr=subprocess.STDOUT,
                    pass_fds=[theirs.fileno(), guard],
                    start_new_session=True,
                )
        except OSError:
            ours.close()
            os.close(self._alive)
            os.close(self._log.inlet)
            self._log.close(LOG_END_S)
            raise
        finally:
            os.close(guard)
        os.close(self._log.inlet)
        self.pid = self._popen.pid
        self.process_start = process_start(self.pid) or ""

    async def attach(
        self, *, on_message: Callable[[FromRank], None], on_exit: Callable[[], None]
    ) -> None:
        """
        Reads the rank's channel and waits for its end. `on_exit` comes after the last message.
        """
        self.channel = channel = await AsyncChannel.open(self._socket)
        loop, exited = asyncio.get_running_loop(), asyncio.Event()

        def wait() -> None:
            self._popen.wait()
            try:
                loop.call_soon_threadsafe(exited.set)
            except RuntimeError:
                pass  # The agent's loop has ended: nobody is left to tell.

        async def read() -> None:
            try:
                while True:
                    message = read_from_rank(await channel.receive())
                    if message is not None:
                        on_message(message)
            except ChannelClosed:
                pass
            # Its answer may be lost, so the rank ends: whoever waits for it would wait forever.
            except Exception as error:
                text = f"Cannot read a message of rank {self.rank}: {error!r}"
                failure = report(self.rank, cause="other", message=text)
                on_message(RankError(task=None, failure=failure))
                self.kill()

        async def follow() -> None:
            reader = asyncio.create_task(read())
            await exited.wait()
            # A child that inherited the rank's end could hold the channel open forever, so the wait
            # has a bound.
            await asyncio.wait([reader], timeout=0.5)
            reader.cancel()
            self.returncode, self.state = self._popen.returncode, "exited"
            on_exit()

        threading.Thread(target=wait, name=f"wait-{self.pid}", daemon=True).start()
        self._following = asyncio.create_task(follow())

    def send(self, message: ToRank) -> None:
        if self.channel and self.state != "exited":
            self.channel.send(message.to_object())

    def write_stacks(self) -> None:
        """
        Asks a rank that hangs where it is; the answer is in its log. A stopped process says
        nothing, so we do.
        """
        if self.state in (
            "starting",
            "exited",
        ):  # It may not listen yet, and would die of the signal.
            return
        self._log.write(
            f"\nholdfast: rank {self.rank} (pid {self.pid}) hangs in state {process_state(self.pid)}; stacks:\n"
        )
        try:
            os.kill(self.pid, signal.SIGUSR1)
        except ProcessLookupError:
            pass

    def kill(self) -> None:
        """
        SIGKILL to the rank and all it started. At once; `wait_dead` waits until they are gone.
        """
        self._below.update(
            descendants(self.pid)
        )  # While the rank lives: then they become children of this agent.
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        for pid in {*self._below, *carriers(self._nonce)}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    async def wait_dead(self) -> None:
        """Until no process of the rank's group is alive."""
        deadline = time.monotonic() + DEAD_WAIT_S
        while time.monotonic() < deadline and (
            self._popen.poll() is None or alive_in_group(self.pid)
        ):
            await asyncio.sleep(0.01)
        for child in (-self.pid, *self._below):
            reap(child)
        if self.channel:
            await asyncio.wait([self._following], timeout=1)
            self.channel.close()
        else:
            self._socket.close()
        self._log.close(LOG_END_S)
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1

    def kill_now(self) -> None:
        """For the agent's own end, without a loop."""
        self.kill()
        try:
            self._popen.wait(timeout=KILL_WAIT_S)
        except subprocess.TimeoutExpired:
            pass  # Uninterruptible in the kernel: it dies when it comes back.
        self._log.drain()

    def drain_log(self) -> None:
        """What the rank has printed until now is in its log."""
        self._log.drain()

    def describe(self) -> RankState:
        code = self.returncode
        return RankState(
            rank=self.rank,
            pid=self.pid,
            process_start=self.process_start,
            state=self.state,
            exit_code=code if code is not None and code >= 0 else None,
            signal=signal.Signals(-code).name if code is not None and code < 0 else None,
            process_state=process_state(self.pid) if code is None else None,
        )

    def machine_evidence(self) -> tuple[list[str], int | None]:
        """
        What the machine says of this process, if we may read it: the FailureReport's `kernel` and
        `oom_kills`.
        """
        since_s = int(self.process_start or 0) / os.sysconf("SC_CLK_TCK")
        kernel = kernel_lines(self.pid, since_s=since_s, gpus=self._gpus)
        now = memory_kills()
        if now is None or self._memory_kills is None:
            return kernel, None
        return kernel, max(0, now - self._memory_kills)
