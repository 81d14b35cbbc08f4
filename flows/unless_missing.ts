import { isNothing } from "../engine/mod.ts";

/**
 * For a `catch` where what is gone already is as good as removed, or simply not there. Any other
 * error is thrown again.
 */
export function unlessMissing(error: unknown): undefined {
  if (!isNothing(error)) throw error;
}
