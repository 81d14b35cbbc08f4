"""
Size limits for both ends of the connection (`workers/line/limits.ts`). Larger data fails where it is
created: a frame that the engine refuses would close the connection and be sent again on the next
one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCHEMA: Mapping[str, Any] = json.loads(Path(__file__).with_name("protocol.schema.json").read_text())

FRAME_BYTES_MAX: int = SCHEMA["limits"]["frame_bytes_max"]
MESSAGE_BYTES_MAX: int = SCHEMA["limits"]["message_bytes_max"]
INLINE_BYTES_MAX: int = SCHEMA["limits"]["inline_bytes_max"]
ANSWER_BYTES_MAX: int = SCHEMA["limits"]["answer_bytes_max"]
BLOBS_MAX: int = SCHEMA["limits"]["blobs_max"]
