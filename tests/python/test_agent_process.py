"""The process of a rank: what it inherits."""

import os

from holdfast_worker.agent_process import rank_environment


def test_rank_environment_lets_the_message_win_and_no_secret_through() -> None:
    base = {
        "A": "base",
        "PGPASSWORD": "x",
        "HOLDFAST_STORE": "x",
        "VIRTUAL_ENV": "/agent",
        "PYTHONPATH": "/base",
    }
    given = {"A": "given", "PYTHONPATH": "/mine", "URL": "postgresql://u:p@h/d"}
    env = rank_environment(base, given, {"RANK": "0"})
    assert (env["A"], env["RANK"], env["PYTHONPATH"].split(os.pathsep)[1:]) == (
        "given",
        "0",
        ["/mine"],
    )
    assert not {"PGPASSWORD", "HOLDFAST_STORE", "VIRTUAL_ENV", "URL"} & set(env)
