"""
How transformers opens a model, as `workers/trainer/model_opening.ts` says. Every model that computes is
opened here: transformers itself fills what a directory lacks with noise, drops what the model has
no place for, and only logs both.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast_worker.operation import BadDataError
from holdfast_worker.wire.types import SamplerSpec, TrainerSpec

NAMED = 4  # Tensors that an error names; it counts the rest.
# Of what a directory lacks. Fixed: a policy, its reference and a sampler's base are the same model.
MISSING_SEED = 0
# A constant that earlier releases of transformers saved beside each mask of attention. They saved
# the masks, too, which models still have as buffers.
SAVED_ONCE = ".masked_bias"


@dataclass(frozen=True)
class Opening:
    """
    `attn_implementation`: None: transformers chooses. `configured`: whether the `model` block of a
    run decides, so that an error may name its settings.
    """

    attn_implementation: str | None = None
    trust_remote_code: bool = False
    open_with_missing: bool = False
    open_with_unexpected: bool = False
    configured: bool = False

    @classmethod
    def of(cls, spec: TrainerSpec | SamplerSpec) -> Opening:
        """That of a run."""
        return cls(
            spec.attn_implementation,
            spec.trust_remote_code,
            spec.open_with_missing,
            spec.open_with_unexpected,
            configured=True,
        )

    def reading(self) -> dict[str, Any]:
        """Options for a configuration or a tokenizer. No process of a run asks the hub."""
        return {"trust_remote_code": self.trust_remote_code, "local_files_only": True}

    def building(self) -> dict[str, Any]:
        """Options for a model."""
        attention = self.attn_implementation
        chosen = {} if attention is None else {"attn_implementation": attention}
        return {"trust_remote_code": self.trust_remote_code, **chosen}

    def language_model(self, directory: str | Path, **options: Any) -> Any:
        """
        The causal language model of a directory, whole. `options` go to transformers. Raises
        BadDataError if the directory has not exactly the weights that its configuration describes.
        """
        from transformers import AutoModelForCausalLM

        found = self.loaded(AutoModelForCausalLM, directory, **options)
        self.check(directory, found)
        return found.model

    def loaded(self, kind: Any, directory: str | Path, **options: Any) -> Found:
        """
        A directory's model by transformers' class `kind`. Raises BadDataError for a tensor of a
        wrong shape, and for two tensors where the configuration says one.
        """
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(MISSING_SEED)
            model, found = kind.from_pretrained(
                directory,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # Refused here, by name.
                local_files_only=True,
                **self.building(),
                **options,
            )
        wrong = {
            name: (tuple(saved), tuple(described))
            for name, saved, described in found["mismatched_keys"]
        }
        if wrong:
            name, (saved, described) = min(wrong.items())
            raise BadDataError(
                f"Cannot open model '{directory}' because its tensor '{name}' has the shape {saved} "
                f"and its config.json describes {described} ({len(wrong)} such). Fix: start a new "
                "run with a model whose files belong together"
            )
        _check_tied(directory, model)
        computed = {name for name, _ in model.named_buffers()}
        unexpected = {
            name
            for name in found["unexpected_keys"]
            if name not in computed and not name.endswith(SAVED_ONCE)
        }
        return Found(model, frozenset(found["missing_keys"]), frozenset(unexpected))

    def check(self, directory: str | Path, found: Found) -> None:
        """Raises BadDataError if model and files differ in tensors and the run does not mean that."""
        if found.unexpected and not self.open_with_unexpected:
            raise BadDataError(
                f"Cannot open model '{directory}' because {type(found.model).__name__} has no "
                f"place for tensors of its files: {_named(found.unexpected)}. Fix: start a new "
                "run with a model of this architecture"
                + self._or("open_with_unexpected: true to leave them out, also of exports")
            )
        if found.missing and not self.open_with_missing:
            raise BadDataError(
                f"Cannot open model '{directory}' because it lacks tensors: "
                f"{_named(found.missing)}. Fix: start a new run with a whole copy of the model"
                + self._or("open_with_missing: true to start from random numbers in their place")
            )

    def _or(self, setting: str) -> str:
        return f", or set model.{setting}" if self.configured else ""


@dataclass(frozen=True)
class Found:
    """
    A model that was opened. `missing`: its tensors that the files lack, which are seeded noise.
    `unexpected`: tensors of the files that it has no place for, except those that transformers
    leaves out on purpose (`_keys_to_ignore_on_load_unexpected`: layers of multi-token prediction,
    vision towers).
    """

    model: Any
    missing: frozenset[str]
    unexpected: frozenset[str]


def _named(tensors: Collection[str]) -> str:
    rest = f" and {len(tensors) - NAMED} more" if len(tensors) > NAMED else ""
    return f"{sorted(tensors)[:NAMED]}{rest}"


def _check_tied(directory: str | Path, model: Any) -> None:
    """
    transformers opens such a directory untied. Samplers, vLLM and every program that builds the
    architecture from config.json tie, and would sample from different weights.
    """
    tied = getattr(model, "get_expanded_tied_weights_keys", None)  # None: transformers 4.
    for target, source in tied(all_submodels=True).items() if tied is not None else ():
        if model.get_parameter_or_buffer(target) is not model.get_parameter_or_buffer(source):
            raise BadDataError(
                f"Cannot open model '{directory}' because its config.json ties '{target}' to "
                f"'{source}' (tie_word_embeddings) and its files have different values for them. "
                'Fix: set "tie_word_embeddings": false in its config.json to use both, and resume; or '
                f"remove '{target}' from its files, and start a new run"
            )


# Without its code, and with all its tensors. No setting changes that.
PLAIN = Opening()
