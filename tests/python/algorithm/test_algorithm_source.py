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
