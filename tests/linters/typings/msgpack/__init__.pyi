"""Of msgpack, which has no types, what our Python calls."""

from collections.abc import Callable
from typing import Any, NamedTuple

class ExtType(NamedTuple):
    code: int
    data: bytes

def packb(
    o: object,
    *,
    use_bin_type: bool = True,
    default: Callable[[Any], object] | None = None,
    unicode_errors: str | None = None,
) -> bytes: ...
def unpackb(
    packed: bytes,
    *,
    raw: bool = False,
    strict_map_key: bool = True,
    ext_hook: Callable[[int, bytes], object] = ...,
    unicode_errors: str | None = None,
    max_str_len: int = -1,
    max_bin_len: int = -1,
    max_ext_len: int = -1,
) -> Any: ...
