import { stringify } from "yaml";
import { loadConfig, type UsedProfile } from "../../../configs/mod.ts";
import { print, printJson, table } from "../../display/output.ts";
import { defineVerb } from "../../verb.ts";
import { ARGUMENTS } from "../../arguments.ts";
import { flag, json } from "../../options.ts";

/** `config show CONFIG [a.b=c ...]`: the resolved configuration. */
export const configShowVerb = defineVerb({
  name: "config show",
  about: "print the resolved configuration",
  arguments: { "<config>": ARGUMENTS.config, "[overrides...]": ARGUMENTS.overrides },
  options: { json, origin: flag("show where each value comes from") },
  action: ({ args, flags }) => showConfig(args.config, args.overrides, flags),
});

/** `origin`: prints where each value comes from instead. */
async function showConfig(
  file: string,
  overrides: string[],
  options: { json?: boolean; origin?: boolean },
): Promise<void> {
  const loaded = await loadConfig(file, { overrides, cwd: Deno.cwd() });
  if (options.origin) {
    if (options.json) return printJson(loaded.origins);
    const rows = loaded.origins.map((
      { path, value, origin, where },
    ) => [path, JSON.stringify(value), where || origin]);
    print(table(["setting", "value", "from"], rows));
  } else {
    if (options.json) return printJson(loaded.config);
    print(stringify(loaded.config).trimEnd());
  }
  if (loaded.profile !== null) print(profileText(loaded.profile));
}

/**
 * What a profile set, and where equality with the framework ends, as comments of the configuration
 * above.
 */
function profileText({ name, about, set, written, ends }: UsedProfile): string {
  const settings = (values: Record<string, unknown>) =>
    Object.entries(values).map(([key, value]) => `${key}: ${JSON.stringify(value)}`).join(", ") ||
    "nothing";
  return [
    `# algorithm.profile ${name} (${about}) set ${settings(set)}.`,
    ...(Object.keys(written).length === 0
      ? []
      : [`# Overridden here; the profile has ${settings(written)}.`]),
    "# Where equality ends:",
    ...[
      ...ends,
      "A profile never reproduces how its gradient depends on the split into micro-batches " +
      "and ranks.",
    ]
      .map((sentence) => `# - ${sentence}`),
  ].join("\n");
}
