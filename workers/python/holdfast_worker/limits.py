"""
Sizes that both ends of the line hold to (`workers/limits.ts`). Whoever makes something larger
learns it there: a frame that the engine refuses would end the line, and come again on the next.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SCHEMA: dict[str, Any] = json.loads(Path(__file__).with_name("protocol.schema.json").read_text())

FRAME_BYTES_MAX: int = SCHEMA["limits"]["frame_bytes_max"]
MESSAGE_BYTES_MAX: int = SCHEMA["limits"]["message_bytes_max"]
INLINE_BYTES_MAX: int = SCHEMA["limits"]["inline_bytes_max"]
ANSWER_BYTES_MAX: int = SCHEMA["limits"]["answer_bytes_max"]
BLOBS_MAX: int = SCHEMA["limits"]["blobs_max"]
