"""
What drivers speak: a line {command, argument} of JSON on stdin is answered with a line {result} or
{error} on stdout.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any


def answer_lines(commands: Mapping[str, Callable[[Any], Any]]) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": commands[request["command"]](request["argument"])}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer, allow_nan=False), flush=True)
