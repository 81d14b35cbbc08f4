"""A file's settings, checked against its Config."""

from __future__ import annotations

from typing import Any

import pytest

from algorithm_files import P3O, recorded
from holdfast_worker.algorithm import AlgorithmError
from holdfast_worker.algorithm.describe import describe


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"std_epsilom": 1},
            r"the setting 'std_epsilom' because there is none .*\(did you mean std_epsilon\?\)",
        ),
        ({"std_epsilon": "a"}, r"the setting 'std_epsilon' 'a': expected float"),
        ({"std_epsilon": True}, r"the setting 'std_epsilon' True: expected float"),
        ({"pull": "k2"}, r"the setting 'pull' 'k2': expected Literal\['k3', 'forward'\]"),
    ],
)
def test_settings_are_checked_against_config(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(AlgorithmError, match=message):
        describe(recorded(P3O, **settings))


PROFILES = (
    P3O
    + """
PROFILES = {"paper": {"std_epsilon": 0.5, "pull": "forward"}, "broken": 3}
"""
)


def test_a_profile_fills_in_settings_that_are_left_out() -> None:
    paper = {**recorded(PROFILES), "profile": "paper"}
    assert describe(paper)["settings"] == {"std_epsilon": 0.5, "pull": "forward"}
    other = {**recorded(PROFILES, pull="k3"), "profile": "paper"}
    assert describe(other)["settings"] == {"std_epsilon": 0.5, "pull": "k3"}


@pytest.mark.parametrize(
    ("source", "profile", "message"),
    [
        (
            PROFILES,
            "papre",
            r"the profile 'papre' because there is none .*\(did you mean paper\?\): it has paper, br",
        ),
        (P3O, "paper", r"the profile 'paper' because there is none .*: it has no PROFILES$"),
        (
            "def PROFILES():\n    return {}\n" + P3O,
            "paper",
            r"Cannot use PROFILES of my.py because it is a function: write a dict",
        ),
        (
            P3O + "\nPROFILES = {'paper': {}, 3: {}}\n",
            "other",
            r"the profile 'other' .*: it has paper, 3$",
        ),
        (PROFILES, "broken", r"the profile 'broken' of my.py because it is a int: write a dict"),
        (
            P3O + "\nPROFILES = {'paper': {'std': 1}}\n",
            "paper",
            r"setting 'std' because there is none of that name",
        ),
    ],
)
def test_a_profile_that_a_file_does_not_have_is_refused(
    source: str, profile: str, message: str
) -> None:
    with pytest.raises(AlgorithmError, match=message):
        describe({**recorded(source), "profile": profile})
