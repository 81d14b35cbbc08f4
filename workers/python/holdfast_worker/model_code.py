"""Code that a model brings: whether it needs it, and whether it can be loaded. Runs none of it.

`python -m holdfast_worker.model_code` reads [{name, directory, trusted}] as JSON and writes for
each a sentence that says why it cannot be opened, or null.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict, cast

CONFIGURATIONS = ("config.json", "tokenizer_config.json")


class CheckedModel(TypedDict):
    """`name`: as the configuration has it. `trusted`: `trust_remote_code`."""

    name: str
    directory: str
    trusted: bool


def code_of(directory: Path) -> list[str]:
    """Where a model's configurations say that its classes are: `modeling_x.XForCausalLM`."""
    found: set[str] = set()
    for file in CONFIGURATIONS:
        for entry in _auto_map(directory / file).values():
            listed = cast("list[object]", entry) if isinstance(entry, list) else [entry]
            found.update(str(one) for one in listed if one)
    return sorted(found)


def _auto_map(file: Path) -> dict[str, Any]:
    return (json.loads(file.read_text()).get("auto_map") or {}) if file.is_file() else {}


def why_not(model: CheckedModel) -> str | None:
    """Why a model cannot be opened because of its code. None: nothing is wrong with that."""
    name, directory = model["name"], Path(model["directory"])
    named = code_of(directory)
    if not named:
        return None
    if model["trusted"]:
        return next(_unusable(name, directory, named), None)
    files = ", ".join(sorted({_file(one) for one in named}))
    if not _needs_code(directory):
        return None
    return (
        f"Cannot open model '{name}' because it needs its own Python code ({files}) and "
        "model.trust_remote_code is false: that code would run in the workers with your rights. "
        "Fix: read it, then set model.trust_remote_code: true; or name a model that transformers "
        "can open by itself"
    )


def _file(reference: str) -> str:
    """`owner/name--modeling_x.Class` -> `owner/name--modeling_x.py`."""
    return f"{reference.rsplit('.', 1)[0]}.py"


def _needs_code(directory: Path) -> bool:
    import transformers

    auto: Any = transformers  # Its types are partly unknown.
    options = {"trust_remote_code": False, "local_files_only": True}
    try:
        config = auto.AutoConfig.from_pretrained(directory, **options)
        auto.AutoTokenizer.from_pretrained(directory, **options)
    except ValueError as error:
        # Something else that is wrong is said by opening the model.
        return "trust_remote_code" in str(error)
    except Exception:
        return False
    model = "AutoModelForCausalLM"
    is_native = type(config) in getattr(auto, model)._model_mapping
    return model in _auto_map(directory / "config.json") and not is_native


def _unusable(name: str, directory: Path, named: list[str]) -> Iterator[str]:
    from transformers import dynamic_module_utils

    modules: Any = dynamic_module_utils
    for reference in named:
        if "--" in reference:
            repository = reference.split("--", 1)[0]
            yield (
                f"Cannot open model '{name}' because its code is in a different repository, "
                f"'{repository}': nothing fixes its version. "
                "Fix: save the model with its code in one directory (save_pretrained after "
                "trust_remote_code) and name that"
            )
            continue
        try:
            modules.get_cached_module_file(str(directory), _file(reference), local_files_only=True)
        except Exception as error:
            text = " ".join(str(error).split())
            yield (
                f"Cannot open model '{name}' because its code {_file(reference)} cannot be loaded: "
                f"{text}. Fix: install what it imports in the environment of the workers "
                "(trainer.python, sampler.python), or name a whole copy of the model"
            )


def main() -> None:
    print(json.dumps([why_not(one) for one in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
