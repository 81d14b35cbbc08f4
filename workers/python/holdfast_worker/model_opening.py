"""How transformers opens a model, as `workers/model_opening.ts` says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast_worker.wire_types import SamplerSpec, TrainerSpec


@dataclass(frozen=True)
class Opening:
    """`attn_implementation`: None: transformers chooses."""

    attn_implementation: str | None = None
    trust_remote_code: bool = False

    @classmethod
    def of(cls, spec: TrainerSpec | SamplerSpec) -> Opening:
        """That of a run."""
        return cls(spec.attn_implementation, spec.trust_remote_code)

    def reading(self) -> dict[str, Any]:
        """Options for a configuration or a tokenizer. No process of a run asks the hub."""
        return {"trust_remote_code": self.trust_remote_code, "local_files_only": True}

    def building(self) -> dict[str, Any]:
        """Options for a model."""
        attention = self.attn_implementation
        chosen = {} if attention is None else {"attn_implementation": attention}
        return {"trust_remote_code": self.trust_remote_code, **chosen}


PLAIN = Opening()  # As transformers opens a model by default, without its code.
