/**
 * The JSON of a file that can be made again from the journal or by the next engine; null if it is not there, empty, torn or anything
 * else but JSON. Whoever reads one checks its shape: a power cut or a person may have left whatever there is.
 */
export function readDerivedJson(path: string): unknown {
  try {
    return JSON.parse(Deno.readTextFileSync(path));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof SyntaxError) return null;
    throw error;
  }
}
