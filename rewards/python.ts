import { z } from "zod";
import { RewardStyle, rowAnswer, setting } from "../data/mod.ts";
import { type Called, defineProcessReward, type ProcessReward, type RewardRow } from "./define.ts";
import { ofProcess, processOf } from "./process_limits.ts";

const SHAPE = /^(.+\.py):([A-Za-z_]\w*)$/;

/** The two halves of `path.py:function`; null if the text has a different form. */
export function parsePythonReward(text: string): { path: string; function: string } | null {
  const match = text.match(SHAPE);
  return match ? { path: match[1]!, function: match[2]! } : null;
}

const /** @internal */ config = z.strictObject({
  source: z.string().regex(SHAPE, "must be path.py:function").describe(
    "`path.py:function`: where the function is.",
  ),
  style: RewardStyle.optional().describe(
    "The framework whose conventions the function follows. Absent: recognised by its signature.",
  ).register(setting, { numerics: false, fork: "free", resume: "refused" }),
  timeout_ms: z.int().positive().default(10_000).describe(
    "A call that takes longer fails its samples.",
  ).register(setting, { unit: "ms", resume: "stages" }),
  needs: z.array(z.string().min(1)).optional().describe(
    "Columns of `row` that it reads: each row must have them. Absent: its parameters.",
  ),
  ...ofProcess,
});
/** @internal */
type Settings = z.output<typeof config>;

/**
 * A reward function in a Python file. It runs in a pool of processes; this is only its description.
 */
export const python: ProcessReward<"python", typeof config.shape> = defineProcessReward({
  name: "python",
  about: "A function in a Python file. Short form: `path.py:function`.",
  runs_on: "process",
  kept: { by: "code", usually: true },
  right_at: 0.5, // Midway between 0 and 1.
  says_right: true,
  config,
  label: ({ source }) => parsePythonReward(source)!.function.toLowerCase(),
  check: requireColumns,
  asks: ({ source, style, timeout_ms, ...process }) => ({
    source,
    timeout_ms,
    process: processOf(process),
    style,
  }),
});

const FRAMEWORKS = RewardStyle.options.filter((style) => style !== "holdfast");

function requireColumns(
  row: RewardRow,
  { source, needs: declaredNeeds = [] }: Settings,
  { needs = [], style }: Called = {},
): void {
  const has = (name: string) =>
    (row[name] ?? null) !== null || (name === "answer" && rowAnswer(row) !== undefined);
  const lacking = [...declaredNeeds, ...needs].find((name) => !has(name));
  if (lacking === undefined) return;
  // Its parameters may be those of a framework, under names that were not recognised.
  const hint = style === "holdfast" && needs.includes(lacking)
    ? `, and its signature is none of ${FRAMEWORKS.join(", ")}, which \`style\` may name`
    : "";
  throw new RangeError(
    `Cannot score with '${source}' because the row has no '${lacking}'${hint}`,
  );
}
