"""A message of a chat, with all fields that its row has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Message = Mapping[str, Any]


def whole_message(message: Message) -> dict[str, Any]:
    """As the row has it: `more` is JSON of all fields but role and content (`data/prompt.ts`)."""
    fields = dict(message)
    more = fields.pop("more", None)
    return fields if more is None else {**fields, **json.loads(more)}
