/**
 * Size limits for both ends of the line. Larger data fails with a named error before it is sent:
 * the other end would refuse the frame, close the connection and receive it again on the next one.
 * Python has them in its `limits.py`, which `deno task schema` writes.
 */
export const LIMITS = {
  /** One binary frame: a piece of a blob, so that other messages can go in between. */
  frame_bytes_max: 4 * 1024 * 1024,
  /** One control message. Long data travels separately, so all are far smaller. */
  message_bytes_max: 32 * 1024 * 1024,
  /** An operation's arguments or outputs inside their message. */
  inline_bytes_max: 256 * 1024,
  /** All blobs of one answer together. */
  answer_bytes_max: 2 ** 30,
  /** Blobs of one answer. */
  blobs_max: 1024,
} as const;
