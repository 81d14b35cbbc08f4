import { basename, extname } from "node:path";

/**
 * What a source without a name is called in results and metrics: its file's name without the ending,
 * or the data set's name at the hub, which is the same at every commit.
 */
export function sourceLabel(path: string): string {
  return /^hf:\/\/datasets\/[^/]+\/([^/?@]+)/.exec(path)?.[1] ?? basename(path, extname(path));
}
