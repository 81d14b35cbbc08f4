"""The process of a rank: what it inherits."""

import os

from holdfast_worker.agent.process import rank_environment


def test_rank_environment_lets_the_message_win_and_no_secret_through() -> None:
    base = {
        "A": "base",
        "PGPASSWORD": "x",
        "HOLDFAST_STORE": "x",
        "VIRTUAL_ENV": "/agent",
        "PYTHONPATH": "/base",
    }
    variables = {"A": "given", "PYTHONPATH": "/mine", "URL": "postgresql://u:p@h/d"}
    env = rank_environment(base, variables, {"RANK": "0"})
    assert (env["A"], env["RANK"], env["PYTHONPATH"].split(os.pathsep)[1:]) == (
        "given",
        "0",
        ["/mine"],
    )
    assert not {"PGPASSWORD", "HOLDFAST_STORE", "VIRTUAL_ENV", "URL"} & set(env)


def test_rank_environment_has_the_hubs_tokens_only_for_rewards() -> None:
    names = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACEHUB_API_TOKEN")
    base = dict.fromkeys(names, "secret") | {"HF_HOME": "/cache"}
    assert "secret" not in rank_environment(base, {}, {}).values()
    assert rank_environment(base, {}, {})["HF_HOME"] == "/cache"
    assert rank_environment(base, {}, {}, keeps_hub_tokens=True).items() >= base.items()
