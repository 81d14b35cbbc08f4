/** `docs/settings.md`: every setting with its declared facts. */
import { z } from "zod";
import { FLOWS } from "../schema.ts";
import { type Setting, settingsOf } from "./settings_of.ts";

export const SETTINGS_PAGE_URL = new URL("../../docs/settings.md", import.meta.url);

const HEAD = `# Every setting

Each setting declares everything about itself in one place; \`deno task schema\` generates this page
from these declarations. [Configuration](configuration.md) explains how to write a file and what the
settings are for.

- **unit**: the unit of the number.
- **fork**: what a [fork](forks.md) may change. \`start\`: fixed in every fork. \`round 1\`:
  fixed once the prefix has a round. \`rows\`: fixed once rows were trained on. \`after the warm-up\`: fixed at
  rounds after the warm-up. \`0 or not\`: only a change from or to 0 is refused. \`rounds\`: may
  increase, or decrease down to the fork's round. Empty: a fork may change it, except for what
  [several settings decide together](forks.md).
- **resume**: whether \`resume RUN a.b=c\` may [change it](recovery.md#settings-that-may-change).
  \`yes\`: no result depends on it. \`replan\`: results depend on it up to rounding, and the
  change is recorded. Empty: only a fork or a new run can change it.
- **numerics**: \`yes\` if it is part of a version's recorded [numerics](guarantee.md).
`;

const COLUMNS = ["setting", "default", "unit", "fork", "resume", "numerics"];

type Row = { path: string; cells: string[]; flows: Set<string> };

/** The text of `docs/settings.md`. */
export function settingsPage(): string {
  const blocks = Map.groupBy(rows(), ({ path }) => path.includes(".") ? path.split(".")[0]! : "");
  const sections = [...blocks].map(([block, found]) => {
    const title = block === "" ? "## Of the whole run" : `## ${block}`;
    const lines = found.map(({ path, cells, flows }) => {
      const others = found.some((one) => one.path === path && one.flows !== flows);
      const name = `\`${path}\`${others ? ` (${[...flows].join(", ")})` : ""}`;
      return `| ${[name, ...cells].join(" | ")} |`;
    });
    return [
      title,
      "",
      `| ${COLUMNS.join(" | ")} |`,
      `|${" --- |".repeat(COLUMNS.length)}`,
      ...lines,
    ].join("\n");
  });
  return `${HEAD}\n${sections.join("\n\n")}\n`;
}

/** One for each setting, and more where flows or algorithms have it otherwise. */
function rows(): Row[] {
  const found = new Map<string, Row>();
  const defaults = new Map<string, Set<string>>();
  for (const [flow, schema] of Object.entries<z.ZodType>(FLOWS)) {
    const all = settingsOf(schema);
    for (const one of all) {
      if (one.block) continue;
      const [fallback, cells] = [defaultOf(one.schema), cellsOf(one, all)];
      const key = `${one.path} ${cells}`;
      const row = found.get(key) ?? { path: one.path, cells, flows: new Set<string>() };
      found.set(key, { ...row, flows: row.flows.add(flow) });
      defaults.set(key, (defaults.get(key) ?? new Set()).add(fallback));
    }
  }
  return [...found].map(([key, row]) => {
    const [fallback, ...others] = defaults.get(key)!;
    return { ...row, cells: [others.length > 0 ? "it depends" : fallback!, ...row.cells] };
  });
}

function cellsOf({ path, declared, facts }: Setting, all: readonly Setting[]): string[] {
  const around = all.filter((one) => one.block && path.startsWith(`${one.path}.`));
  const forks = [...around, { declared }].flatMap((one) => forkText(one.declared.fork));
  const resume = facts.resume === "workers" || facts.resume === "stages" ? "yes" : facts.resume;
  return [
    declared.unit ?? "",
    [...new Set(forks)].join(", "),
    resume === "refused" ? "" : resume!,
    facts.numerics ? "yes" : "",
  ];
}

function forkText(fork: Setting["declared"]["fork"]): string[] {
  if (fork === undefined || fork === "free") return [];
  if (fork === "rounds") return ["rounds"];
  if (fork.on_or_off) return ["0 or not"];
  return [
    {
      start: "start",
      round_1: "round 1",
      rows: "rows",
      after_warmup: "after the warm-up",
    }[fork.fixed],
  ];
}

/** As a file would have it; empty: it must be written, or may be left out. */
function defaultOf(schema: z.ZodType): string {
  const value = schema.safeParse(undefined);
  return value.success && value.data !== undefined ? `\`${JSON.stringify(value.data)}\`` : "";
}
