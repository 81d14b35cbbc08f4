"""What `path.py:NAME` names: a function, an object or a class, and its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Target:
    """`names`: parameters that can be passed by name. `places`: those that can be passed by place,
    in order. `takes_all`: it has `**kwargs`.
    """

    value: Any
    names: frozenset[str]
    places: tuple[str, ...]
    required: frozenset[str]
    takes_all: bool

    @classmethod
    def of(cls, value: Any) -> Target:
        every = [] if inspect.isclass(value) else _parameters(value)
        by_name = [p for p in every if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        by_place = [p for p in every if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return cls(
            value=value,
            names=frozenset(p.name for p in by_name),
            places=tuple(p.name for p in by_place),
            required=frozenset(
                p.name
                for p in every
                if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
            ),
            takes_all=any(p.kind is p.VAR_KEYWORD for p in every),
        )

    @property
    def is_function(self) -> bool:
        return callable(self.value) and not inspect.isclass(self.value)

    def describe(self, names: Iterable[str]) -> str:
        """`its parameters a and b`, of these names those that it has."""
        found = [name for name in names if name in self.names]
        return f"its parameter{'s' if len(found) > 1 else ''} {' and '.join(found)}"

    def accepted(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """The arguments of `arguments` that it takes by name."""
        return {n: value for n, value in arguments.items() if self.takes_all or n in self.names}

    def columns(self, known: Collection[str]) -> frozenset[str]:
        """The parameters that are none of `known`: columns of the row."""
        return self.names.difference(known)

    def require_names(self, style: str, known: Collection[str]) -> None:
        """Raises TypeError if it cannot be called with these names alone."""
        self.require_columns(style)
        more = sorted(self.required.difference(known))
        if more:
            raise TypeError(
                f"Cannot call it as {style} does because it needs {', '.join(more)}, and {style} "
                f"passes {', '.join(known)}. Fix: give {more[0]} a default, or name another `style`"
            )

    def require_columns(self, style: str) -> None:
        """Raises TypeError if a parameter cannot be passed by name."""
        by_place = sorted(self.required.intersection(self.places) - self.names)
        if by_place:
            raise TypeError(
                f"Cannot call it as {style} does because {by_place[0]!r} is positional-only: "
                "arguments are passed by name"
            )

    def require_places(self, style: str, count: int) -> None:
        """Raises TypeError if it cannot be called with `count` arguments by place."""
        late = sorted(self.required.difference(self.places[:count]))
        if len(self.places) >= count and not late:
            return
        raise TypeError(
            f"Cannot call it as {style} does, with {count} arguments by place, because it takes "
            f"({', '.join(self.places)})"
            + (f" and needs {', '.join(late)}" if late else "")
            + ". Fix: change its signature, or name another `style`"
        )


def _parameters(value: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):  # No callable, or a builtin without a signature.
        return []
