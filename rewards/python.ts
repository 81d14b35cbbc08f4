import { z } from "zod";
import { RewardStyle, setting } from "../data/mod.ts";
import { type Called, defineProcessReward, type ProcessReward, type RewardRow } from "./define.ts";

const SHAPE = /^(.+\.py):([A-Za-z_]\w*)$/;

/** The two halves of `path.py:function`; null if the text has a different form. */
export function parsePythonReward(text: string): { path: string; function: string } | null {
  const match = text.match(SHAPE);
  return match ? { path: match[1]!, function: match[2]! } : null;
}

/** What the processes of a reward may use by default. */
const USUAL = {
  env: [] as string[],
  memory_gib: 8,
  cpu_s: 60,
  file_mib: 1024,
  processes_max: 64,
  isolate: true,
};

/** A limit; null lifts it. The default is not recorded, so that older runs keep their inputs. */
const limit = (usual: number, unit: string, text: string) =>
  z.number().positive().nullable().optional().describe(`${text}. null: no limit; absent: ${usual}.`)
    .register(setting, { unit, resume: "stages" });

/** The store's address and password: they never leave the engine. */
const OF_THE_STORE = /^(HOLDFAST_.*|DATABASE_URL|PG[A-Z]+)$/;
const VariableName = z.string()
  .regex(/^[A-Za-z_]\w*$/, "must be the name of an environment variable")
  .refine((name) => !OF_THE_STORE.test(name), "belongs to the engine and is not passed to workers");

/** What the processes of a reward inherit, and what each may use. */
const ofProcess = {
  env: z.array(VariableName).optional().describe(
    "Environment variables its processes inherit besides the usual ones, such as HF_TOKEN. " +
      "Absent: none.",
  ),
  memory_gib: limit(USUAL.memory_gib, "GiB", "Memory of one of its processes"),
  cpu_s: limit(USUAL.cpu_s, "s", "CPU time of one call, over all its threads"),
  file_mib: limit(USUAL.file_mib, "MiB", "The largest file that it may write"),
  processes_max: z.int().positive().optional().describe(
    `Processes that a call may run concurrently. Absent: ${USUAL.processes_max}.`,
  ).register(setting, { unit: "processes", resume: "stages" }),
  isolate: z.boolean().optional().describe(
    "Whether it sees only its own processes, if this machine allows that (Linux " +
      "namespaces). Absent: true.",
  ),
};

/** What the reward worker receives about a function's processes. */
export type RewardProcess = Required<z.infer<z.ZodObject<typeof ofProcess>>>;

/** What the processes of a reward may use, with defaults for omitted settings. */
export function processOf(settings: z.infer<z.ZodObject<typeof ofProcess>>): RewardProcess {
  const said = Object.keys(USUAL).map((name) =>
    [name, settings[name as keyof typeof USUAL]] as const
  );
  return { ...USUAL, ...Object.fromEntries(said.filter(([, value]) => value !== undefined)) };
}

const /** @internal */ config = z.strictObject({
  source: z.string().regex(SHAPE, "must be path.py:function").describe(
    "`path.py:function`: where the function is.",
  ),
  style: RewardStyle.optional().describe(
    "The framework whose conventions the function follows. Absent: recognised by its signature.",
  ).register(setting, { numerics: false, fork: "free", resume: "refused", since: "0.1.0" }),
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
    ...(style && { style }),
  }),
});

const FRAMEWORKS = RewardStyle.options.filter((style) => style !== "holdfast");

function requireColumns(
  row: RewardRow,
  { source, needs: said = [] }: Settings,
  { needs = [], style }: Called = {},
): void {
  const lacking = [...said, ...needs].find((name) => (row[name] ?? null) === null);
  if (lacking === undefined) return;
  // Its parameters may be those of a framework, under names that were not recognised.
  const hint = style === "holdfast" && needs.includes(lacking)
    ? `, and its signature is none of ${FRAMEWORKS.join(", ")}, which \`style\` may name`
    : "";
  throw new RangeError(
    `Cannot score with '${source}' because the row has no '${lacking}'${hint}`,
  );
}
