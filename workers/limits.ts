/**
 * Sizes that both ends of the line hold to. Whoever makes something larger gets an error that names it, before it is sent: a
 * frame that the other end refuses would end the connection, and come again on the next. Python reads them from the schema.
 */
export const LIMITS = {
  /** Of one binary frame, a piece of a blob: other messages come between. */
  frame_bytes_max: 4 * 1024 * 1024,
  /**
   * Of a control message. What is long by nature travels beside its message, so all are far below.
   */
  message_bytes_max: 32 * 1024 * 1024,
  /** Of an operation's arguments, and of its outputs, inside their message. */
  inline_bytes_max: 256 * 1024,
  /** Of all blobs of one answer together. */
  answer_bytes_max: 2 ** 30,
  /** Blobs of one answer. */
  blobs_max: 1024,
} as const;
