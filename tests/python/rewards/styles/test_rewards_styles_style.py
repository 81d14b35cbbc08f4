"""What styles share: the form of prompts and completions, and arguments that do not exist here."""

from typing import Any

import pytest

from holdfast_worker.rewards.styles.style import (
    Unavailable,
    completion_as_in_row,
    own_row,
    prompt_as_in_row,
)
from styled_rewards import CHAT, samples


def test_prompt_and_completion_have_the_form_of_the_row() -> None:
    text: Any = samples("2")[0]
    chat: Any = samples("2", row_prompt=CHAT)[0]
    assert (prompt_as_in_row(text), completion_as_in_row(text)) == ("1 + 1?", "2")
    assert prompt_as_in_row(chat) == CHAT
    calling: Any = samples("2", row_prompt=[{**CHAT[0], "more": '{"name": "ada"}'}])[0]
    assert prompt_as_in_row(calling) == [{**CHAT[0], "name": "ada"}]
    assert completion_as_in_row(chat) == [{"role": "assistant", "content": "2"}]


def test_own_row_is_the_files_and_the_reference_answer_only_where_it_has_none() -> None:
    bare: Any = samples("2", answer="2", columns={"unit": "m"})[0]
    full: Any = samples("2", answer="2", columns={"answer": "so #### 2"})[0]
    assert own_row(bare) == {"unit": "m", "answer": "2"}
    truth: Any = samples("2", columns={"reward_model": {"ground_truth": ["2", "two"]}})[0]
    assert own_row(truth)["answer"] == ["2", "two"]
    assert own_row(full) == {"answer": "so #### 2"}


def test_an_argument_that_does_not_exist_says_so_when_it_is_read() -> None:
    args = Unavailable("args", "write it into the file")
    assert getattr(args, "reward_key", None) is None
    with pytest.raises(AttributeError, match=r"Cannot read args\.rm_url .* Fix: write it into"):
        _ = args.rm_url
