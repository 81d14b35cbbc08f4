import type { ErrorJson } from "../../engine/mod.ts";
import { type CommandHome, completed } from "./output.ts";

/**
 * Why a run failed: the root error first, then the work that it prevented. The commands in it are
 * for this run and this home.
 */
export function failureText(
  error: ErrorJson,
  { run, home }: { run: string; home: CommandHome },
): string {
  const { root, works } = unwrap(error);
  const message = completed(root.message, home, run);
  return [message, ...works.map(({ key, attempts }) => `  in: ${key} (attempt ${attempts})`)].join(
    "\n",
  );
}

type Work = { key: string; attempts: number };

/** The root cause, below the stages that failed because of it. */
export function rootOf(error: ErrorJson): ErrorJson {
  return unwrap(error).root;
}

function unwrap(error: ErrorJson): { root: ErrorJson; works: Work[] } {
  if (error.code !== "stage_failed" || !error.facts.error) return { root: error, works: [] };
  const { key, attempts } = error.facts as Work;
  const { root, works } = unwrap(error.facts.error as ErrorJson);
  return { root, works: [...works, { key, attempts }] };
}
