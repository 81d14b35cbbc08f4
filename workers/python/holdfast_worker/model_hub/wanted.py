"""Which files of a model's repository a run reads."""

from __future__ import annotations

import re
from collections.abc import Iterable

from holdfast_worker.weights import INDEX_NAME, SINGLE_NAME

CONFIG_NAME = "config.json"
# Configuration, tokenizer and chat template. Weights in other formats have the same endings.
READ = re.compile(r"[^/]+\.(?:json|jinja|txt|model|tiktoken|spm|vocab)")
TEMPLATES = re.compile(r"additional_chat_templates/[^/]+\.jinja")
UNREAD = re.compile(r".*\.index\.json|(?:readme|license|notice|use_policy)\b.*", re.IGNORECASE)
CODE = re.compile(r"[^/]+\.py")


def files_beside_weights(names: Iterable[str], *, code: bool) -> list[str]:
    """The files that are not weights. `code`: with the model's own Python files."""
    return [
        name
        for name in names
        if (READ.fullmatch(name) and not UNREAD.fullmatch(name))
        or TEMPLATES.fullmatch(name)
        or (code and CODE.fullmatch(name))
    ]


def weights_entry(names: Iterable[str]) -> str | None:
    """The file that has all weights, or lists the files that have them. None: no safetensors."""
    known = set(names)
    return next((name for name in (INDEX_NAME, SINGLE_NAME) if name in known), None)


def why_no_weights(names: Iterable[str]) -> str:
    """What a repository without safetensors has instead."""
    known = set(names)
    if "adapter_config.json" in known:
        return "it is an adapter: merge it into its base model, and name that directory"
    if any(name.endswith((".bin", ".pt", ".pth")) for name in known):
        return (
            "it has its weights only as PyTorch pickles (.bin), which are not read: name a "
            "revision with safetensors (its pull requests may have one, such as @refs/pr/1), or "
            "save it once with save_pretrained and name that directory"
        )
    if any(name.endswith(".gguf") for name in known):
        return "it has its weights only as GGUF, which is not trained: name its original"
    return "it has no weights: name a model with model.safetensors"
