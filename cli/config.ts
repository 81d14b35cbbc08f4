import { stringify } from "yaml";
import { configJsonSchema, loadConfig } from "../configs/mod.ts";
import { print, printJson, table } from "./output.ts";

/** `config schema`: the JSON Schema that editors read. */
export function printSchema(): void {
  printJson(configJsonSchema());
}

/** `config show CONFIG [a.b=c ...]`: the resolved configuration; with `--origin` where each value comes from. */
export async function showConfig(
  file: string,
  overrides: string[],
  options: { json?: boolean; origin?: boolean },
): Promise<void> {
  const loaded = await loadConfig(file, { overrides, cwd: Deno.cwd() });
  if (options.origin) {
    if (options.json) return printJson(loaded.origins);
    const rows = loaded.origins.map(({ path, value, origin, where }) => [path, JSON.stringify(value), where || origin]);
    return print(table(["setting", "value", "from"], rows));
  }
  if (options.json) return printJson(loaded.config);
  print(stringify(loaded.config).trimEnd());
}
