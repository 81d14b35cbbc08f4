import { isNothing } from "../../engine/mod.ts";

/** For a `catch` that ignores a missing file. Rethrows every other error. */
export function unlessMissing(error: unknown): undefined {
  if (!isNothing(error)) throw error;
}
