import { parse } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const { tasks } = JSON.parse(Deno.readTextFileSync(`${ROOT}deno.json`)) as {
  tasks: Record<string, { command: string }>;
};

/**
 * What a task of `deno.json` gives Deno before its script: tests run the command line as people do,
 * with its permissions.
 */
export function taskFlags(name: string): string[] {
  const [, , ...words] = tasks[name]!.command.split(" ");
  return words.filter((word) => parse(word).ext !== ".ts");
}
