/** How another framework's algorithms are described as settings of ours. */
import type { z } from "zod";
import type { ALGORITHMS } from "../table.ts";

export type Name = keyof typeof ALGORITHMS;
type Entry<N extends Name> = {
  settings: z.input<(typeof ALGORITHMS)[N]["config"]>;
  ends?: readonly string[];
};
/**
 * What a profile was read from: a commit of a repository, or the file of a release, by its sha256.
 */
export type Source =
  & { name: string; date: string }
  & (
    | { repository: string; commit: string }
    | { release: string; sha256: string }
  );
export type Framework = {
  source: Source;
  /** Where equality ends for every algorithm that learns from rewards. */
  ends: readonly string[];
  algorithms: { readonly [N in Name]?: Entry<N> };
};
