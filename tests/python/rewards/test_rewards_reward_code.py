"""What a reward's process is started with."""

from __future__ import annotations

import json

from holdfast_worker.rewards.reward_code import RewardCode
from holdfast_worker.wire.received import decode
from holdfast_worker.wire.types import RewardProcess
from reward_files import PROCESS


def test_a_process_reads_what_its_pool_wrote() -> None:
    code = RewardCode.of(
        "my.py:f", decode(RewardProcess, {**PROCESS, "env": ["A", "B"], "cpu_s": None}), style="trl"
    )
    assert RewardCode.from_json(code.to_json()) == code
    assert (code.env, code.cpu_s, code.isolate) == (("A", "B"), None, True)
    assert code.style == "trl"
    assert json.loads(code.to_json())["env"] == ["A", "B"]


def test_codes_are_one_pools_only_if_everything_is_equal() -> None:
    one, same = (
        RewardCode.of("my.py:f", decode(RewardProcess, {**PROCESS}), style=None),
        RewardCode.of("my.py:f", decode(RewardProcess, {**PROCESS}), style=None),
    )
    other = RewardCode.of(
        "my.py:f", decode(RewardProcess, {**PROCESS, "processes_max": 17}), style=None
    )
    assert len({one, same, other}) == 2
