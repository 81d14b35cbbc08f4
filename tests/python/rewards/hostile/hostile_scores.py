"""What hostile rewards score."""

from __future__ import annotations

from typing import Any

OWN = 0.5  # What a misbehaving call scores where it gets as far as that.
FORGED = 1e9
Row = dict[str, Any]
