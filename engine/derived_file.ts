/**
 * The JSON of a file that can be made again from the journal or by the next engine; null if it is not there, empty, torn or anything
 * else but JSON. Whoever reads one checks its shape: a power cut or a person may have left whatever there is.
 */
export function readDerivedJson(path: string): unknown {
  try {
    return JSON.parse(Deno.readTextFileSync(path));
  } catch (cause) {
    if (cause instanceof SyntaxError || isNothing(cause)) return null;
    throw cause;
  }
}

/**
 * Whether an error of the file system says that nothing is at a path: a file may stand where a
 * directory would.
 */
export function isNothing(cause: unknown): boolean {
  return cause instanceof Deno.errors.NotFound || cause instanceof Deno.errors.NotADirectory;
}
