import type { Store } from "../../engine/mod.ts";

/**
 * Whether the work of this key, or its stage, has a recorded result: then it is never requested
 * again.
 */
export async function isRecorded(store: Store, run: string, key: string): Promise<boolean> {
  const segments = key.split("/");
  const whole = segments.map((_, i) => segments.slice(0, segments.length - i).join("/"));
  // The first segment alone is a prefix of all rounds.
  for (const part of whole.slice(0, Math.max(1, segments.length - 1))) {
    const rows = await store.read(run, { kinds: ["result"], prefix: part });
    if (rows.some((row) => row.key === part)) return true;
  }
  return false;
}
