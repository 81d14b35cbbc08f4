/**
 * The JSON of a file that can be recreated from the journal or by the next engine; null if it is
 * missing, empty, torn, a directory or not JSON. Readers check its shape, because a power cut or a person may
 * have left anything.
 */
export function readDerivedJson(path: string): unknown {
  try {
    return JSON.parse(Deno.readTextFileSync(path));
  } catch (cause) {
    const isDirectory = cause instanceof Deno.errors.IsADirectory;
    if (isDirectory || cause instanceof SyntaxError || isNothing(cause)) return null;
    throw cause;
  }
}

/**
 * Whether a file system error says that a path does not exist: a file may be where a directory
 * would be.
 */
export function isNothing(cause: unknown): boolean {
  return cause instanceof Deno.errors.NotFound || cause instanceof Deno.errors.NotADirectory;
}
