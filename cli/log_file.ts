/**
 * A worker's log on disk: PATH, and its older parts PATH.1 and PATH.2, as the agent rotates them.
 */

const BLOCK_BYTES = 64 * 1024;
/**
 * How far back the last lines are sought; a longer line is shown in pieces. Bounds the memory used.
 */
const READ_BYTES_MAX = 4 * 1024 * 1024;
const NEWLINE = 10;
const SPACE = 32;
const OLDER = /\.log\.\d+$/;

/** Whether a file's name is that of a log, and not of an older part of one. */
export function isNewestPart(name: string): boolean {
  return !OLDER.test(name);
}

/** The last `count` lines, read from the end, where blank lines are not counted. */
export async function lastLines(path: string, count: number): Promise<string[]> {
  const blocks: Uint8Array[] = [];
  let newlines = 0; // Before the last byte that is not blank.
  let blank = true;
  let bytes = 0;
  for await (const part of partsOf(path)) {
    for (
      let end = part.size;
      end > 0 && newlines <= count && bytes < READ_BYTES_MAX;
      end -= BLOCK_BYTES
    ) {
      const block = await part.read(Math.max(0, end - BLOCK_BYTES), end);
      blocks.unshift(block);
      const written: Uint8Array = blank
        ? block.subarray(0, block.findLastIndex(isText) + 1)
        : block;
      blank &&= written.length === 0;
      newlines += written.reduce((sum, byte) => sum + (byte === NEWLINE ? 1 : 0), 0);
      bytes += block.length;
    }
    if (newlines > count || bytes >= READ_BYTES_MAX) break;
  }
  const text = await new Blob(blocks as BlobPart[]).text();
  let end = text.length;
  while (end > 0 && !isText(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(0, end).split("\n").slice(-count);
}

function isText(code: number): boolean {
  return code > SPACE;
}

/** Follows a log in whole lines. */
export class FollowedLog {
  readonly #path: string;
  /** The part that was read last, and the position in it. */
  #id: string | null = null;
  #offset = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * What was added since the last call; on the first call, everything. What was removed between two
   * calls is lost.
   */
  async *added(): AsyncGenerator<string> {
    const unread: Part[] = [];
    try {
      for await (const part of partsOf(this.#path, { keepOpen: true })) {
        unread.unshift(part);
        if (part.id === this.#id && part.size >= this.#offset) break;
      }
      for (const part of unread) yield* this.#lines(part, { finished: part !== unread.at(-1) });
    } finally {
      for (const part of unread) part.close();
    }
  }

  /** A line without its end is left for later, unless nobody writes to this part any more. */
  async *#lines(part: Part, { finished }: { finished: boolean }): AsyncGenerator<string> {
    if (part.id !== this.#id || part.size < this.#offset) [this.#id, this.#offset] = [part.id, 0];
    while (this.#offset < part.size) {
      const bytes = await part.read(
        this.#offset,
        Math.min(part.size, this.#offset + READ_BYTES_MAX),
      );
      const whole = bytes.lastIndexOf(NEWLINE) + 1;
      const taken = whole > 0
        ? whole
        : finished || bytes.length === READ_BYTES_MAX
        ? bytes.length
        : 0;
      if (taken === 0) return;
      this.#offset += taken;
      yield* new TextDecoder().decode(bytes.subarray(0, taken)).replace(/\n$/, "").split("\n");
    }
  }
}

/** One file of a log. Rotation may give its name to a different file while it is open. */
type Part = {
  id: string;
  size: number;
  read(from: number, to: number): Promise<Uint8Array>;
  close(): void;
};

/**
 * The parts, newest first, each once: a part rotated meanwhile appears again under its next name.
 */
async function* partsOf(path: string, { keepOpen = false } = {}): AsyncGenerator<Part> {
  const seen = new Set<string>();
  // During a rotation, a log briefly lacks one of its names.
  for (let number = 0, missing = 0; missing < 2; number++) {
    const part = await opened(number === 0 ? path : `${path}.${number}`);
    missing = part ? 0 : missing + 1;
    if (!part) continue;
    try {
      if (!seen.has(part.id)) yield part;
    } finally {
      if (!keepOpen || seen.has(part.id)) part.close();
    }
    seen.add(part.id);
  }
}

async function opened(name: string): Promise<Part | null> {
  const file = await Deno.open(name).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
  if (!file) return null;
  const { ino, birthtime, size } = await file.stat();
  return {
    // The system may reuse an inode number once its file is gone.
    id: `${ino} ${birthtime?.getTime()}`,
    size,
    async read(from, to) {
      await file.seek(from, Deno.SeekMode.Start);
      const bytes = new Uint8Array(to - from);
      for (let filled = 0; filled < bytes.length;) {
        const count = await file.read(bytes.subarray(filled));
        if (count === null) return bytes.subarray(0, filled); // It has been truncated since.
        filled += count;
      }
      return bytes;
    },
    close: () => file.close(),
  };
}
