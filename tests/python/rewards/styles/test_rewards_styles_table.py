"""Which style a function has, and that each sample gets its own outcome whatever its style."""

import random
import re
import sys
from typing import Any

import pytest

from holdfast_worker.operation import UserCodeError
from holdfast_worker.rewards.process import load_function
from holdfast_worker.rewards.styles.table import STYLES, recognise
from holdfast_worker.rewards.styles.target import Target
from reward_files import MakePool
from styled_rewards import FILES, path, samples, scored

ONE_OF_EACH = [
    ("trl:boxed", "trl"),
    ("trl:conversational", "trl"),
    ("verl:compute_score", "verl"),
    ("verl:plain", "verl"),
    ("verl:batched", "verl_batch"),
    ("openrlhf:reward_func", "openrlhf"),
    ("feynrl:compute_score", "feynrl"),
    ("feynrl:with_batch", "feynrl_batch"),
    ("feynrl:compute_scores_batch", "feynrl_batch"),
    ("verifiers_0:right", "verifiers"),
    ("verifiers_0:shortest", "verifiers_group"),
    ("verifiers_0:rubric", "verifiers_rubric"),
    ("verifiers_1:AdditionTask", "verifiers_v1"),
    ("verifiers_1:one", "verifiers_v1"),
    ("slime:custom_rm", "slime"),
    ("slime:batched_custom_rm", "slime_group"),
    ("nemo_gym:verify", "nemo_gym"),
    ("nemo_gym:Server", "nemo_gym"),
]


@pytest.mark.parametrize(("name", "style"), ONE_OF_EACH)
def test_a_signature_of_another_framework_is_recognised(
    monkeypatch: pytest.MonkeyPatch, name: str, style: str
) -> None:
    monkeypatch.setattr("sys.path", [str(FILES), *sys.path])
    recognised, why = recognise(Target.of(load_function(path(name))), None)
    assert recognised.name == style
    assert why.startswith("it")


def test_every_style_but_holdfasts_has_a_fixture_and_settings_name_them_all() -> None:
    assert {style for _, style in ONE_OF_EACH} == STYLES.keys() - {"holdfast"}
    settings = (FILES.parents[2] / "data" / "reward_style.ts").read_text()
    assert set(re.findall(r'^ {2}"(\w+)",$', settings, re.MULTILINE)) == STYLES.keys()


def test_an_ambiguous_or_unknown_signature_names_the_styles_and_the_setting(
    pool_of: MakePool,
) -> None:
    with pytest.raises(UserCodeError) as ambiguous:
        pool_of(path("mixed:ambiguous")).load()
    for said in ("trl", "verifiers_group", "Fix: name one: `style: trl`"):
        assert said in str(ambiguous.value)
    with pytest.raises(UserCodeError) as unknown:
        pool_of(path("mixed:unknown")).load()
    for style in STYLES.values():
        assert f"{style.name}: {style.signature}" in str(unknown.value)


def test_style_forces_one_and_a_signature_that_it_cannot_call_is_an_error(
    pool_of: MakePool, score: Any
) -> None:
    forced = score("mixed:ambiguous", samples("a", "b"), style="verifiers_group")
    assert scored(forced) == [0.0, 0.0]
    with pytest.raises(UserCodeError, match="Cannot call it as slime does, with 2 arguments"):
        pool_of(path("mixed:holdfast"), style="slime").load()
    with pytest.raises(UserCodeError, match="Cannot call it as verl does because it needs complet"):
        pool_of(path("mixed:holdfast"), style="verl").load()


KINDS = ["=1", "=2", "=0.25", "none", "nan", "text", "dict", "list"]
OF_THE_CALL = {"raise": "error", "short": "bad_return"}


def wanted(text: str) -> Any:
    """What a sample gets for what its function returns for it."""
    if text.startswith("="):
        return float(text[1:])
    return {"none": "none", **OF_THE_CALL}.get(text, "bad_return")


@pytest.mark.parametrize("name", ["trl", "holdfast"])
def test_each_sample_has_its_own_outcome_and_never_anothers_reward(
    pool_of: MakePool, name: str
) -> None:
    """Any mix of answers, in any order. What goes wrong with a whole call fails all its samples."""
    draw = random.Random(7)
    pool = pool_of(path(f"mixed:{name}"), processes=2)
    for case in range(40):
        kinds = KINDS if case % 3 else [*KINDS, "raise"]
        texts = [draw.choice(kinds) for _ in range(draw.randint(1, 9))]
        if name == "trl" and case % 5 == 0:
            texts.insert(draw.randint(0, len(texts)), "short")
        results = pool.score(samples(*texts), timeout_ms=20_000)
        whole = next((said for text, said in OF_THE_CALL.items() if text in texts), None)
        fails_all = name == "trl" and whole is not None
        assert scored(results) == [whole if fails_all else wanted(text) for text in texts], texts
        assert [one["id"] for one in results] == [str(place) for place in range(len(texts))]
        if fails_all and len(texts) > 1:
            assert all(f"one call for {len(texts)} samples" in one["error"] for one in results)
