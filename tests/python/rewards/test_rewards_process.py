"""What `path.py:NAME` names, and what a call sends back."""

from pathlib import Path

import pytest

from holdfast_worker.rewards.process import load_function, user_traceback
from holdfast_worker.rewards.styles.target import Target


def test_load_function_takes_whatever_a_style_may_have_for_it(tmp_path: Path) -> None:
    path = tmp_path / "named.py"
    path.write_text("rubric = {'funcs': []}\ndef f(a, *, b=1, **more): return a\n")
    assert load_function(f"{path}:rubric") == {"funcs": []}
    target = Target.of(load_function(f"{path}:f"))
    assert (target.names, target.places, target.required) == ({"a", "b"}, ("a",), {"a"})
    assert target.takes_all
    with pytest.raises(AttributeError, match="has no function 'g'"):
        load_function(f"{path}:g")


def test_a_traceback_has_the_users_frames_alone(tmp_path: Path) -> None:
    path = tmp_path / "raising.py"
    path.write_text("def f():\n    raise KeyError('answer')\n")
    with pytest.raises(KeyError) as caught:
        load_function(f"{path}:f")()
    text = user_traceback(caught.value)
    assert text.startswith("KeyError: 'answer'") and f'"{path}", line 2' in text
