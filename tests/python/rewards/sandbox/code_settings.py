"""Settings of the reward `code` for tests, and where this machine has Deno and Pyodide."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from holdfast_worker.rewards.graders.code_answer import CodeSettings, user_cache
from holdfast_worker.rewards.sandbox.pyodide_sandbox import Runtime

ROOT = Path(__file__).resolve().parents[4]
ASK = """
const code = await import("./rewards/code.ts");
console.log(JSON.stringify(code.codeSettings(code.code.config.parse({}))));
"""


@functools.cache
def usual_settings() -> str:
    """As the engine sends them: the runner of the tests is a Deno, or npx has one."""
    deno = os.environ.get("HOLDFAST_TEST_DENO")
    command = [deno] if deno else ["npx", "-y", "deno@2"]
    process = subprocess.run(
        [*command, "eval", "--quiet", ASK],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout


def code_settings(**changed: Any) -> CodeSettings:
    settings: CodeSettings = {**json.loads(usual_settings()), **changed}
    return settings


def fenced(code: str) -> str:
    fence = "`" * 3
    return f"So:\n{fence}python\n{code}\n{fence}\n"


def runtime() -> Runtime:
    return Runtime(**code_settings()["runtime"], cache=str(user_cache()))
