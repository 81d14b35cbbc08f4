"""Size limits for both ends of the connection.

Generated from `workers/line/limits.ts` by `deno task schema`.
Larger data fails where it is created: a frame that the engine refuses would close the connection
and be sent again on the next one.
"""

FRAME_BYTES_MAX = 4194304
MESSAGE_BYTES_MAX = 33554432
INLINE_BYTES_MAX = 262144
ANSWER_BYTES_MAX = 1073741824
BLOBS_MAX = 1024
