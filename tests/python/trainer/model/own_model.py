"""A model of a kind that transformers does not have, with its code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

OWN = "own_tiny"
CODE = """
from transformers import Qwen2Config, Qwen2ForCausalLM
class OwnConfig(Qwen2Config):
    model_type = "own_tiny"
class OwnForCausalLM(Qwen2ForCausalLM):
    config_class = OwnConfig
"""


def use_modules(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Code that transformers copies is in this directory during a test."""
    modules = str(directory / "modules")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
    monkeypatch.syspath_prepend(modules)


def give_code(model: Path) -> Path:
    """Makes a plain model one that needs its own code."""
    auto_map = {
        "AutoConfig": "modeling_own.OwnConfig",
        "AutoModelForCausalLM": "modeling_own.OwnForCausalLM",
    }
    change(model, model_type=OWN, architectures=["OwnForCausalLM"], auto_map=auto_map)
    (model / "modeling_own.py").write_text(CODE)
    return model


def change(model: Path, **fields: Any) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, **fields}))
