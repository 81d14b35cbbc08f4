import type { ErrorJson } from "../engine/mod.ts";
import { type CommandHome, completed } from "./output.ts";

/**
 * What a run failed of: the root error once and first, then the work that could not be finished for it. The commands in it are
 * for this run and this home.
 */
export function failureText(
  error: ErrorJson,
  { run, home }: { run: string; home: CommandHome },
): string {
  const { root, works } = unwrap(error);
  const message = completed(root.message, home, run);
  return [message, ...works.map(({ key, attempts }) => `  in: ${key} (attempt ${attempts})`)].join("\n");
}

type Work = { key: string; attempts: number };

/** What was the matter, below the stages that could not be finished for it. */
export function rootOf(error: ErrorJson): ErrorJson {
  return unwrap(error).root;
}

function unwrap(error: ErrorJson): { root: ErrorJson; works: Work[] } {
  if (error.code !== "stage_failed" || !error.facts.error) return { root: error, works: [] };
  const { key, attempts } = error.facts as Work;
  const { root, works } = unwrap(error.facts.error as ErrorJson);
  return { root, works: [...works, { key, attempts }] };
}
