import { z } from "zod";
import { setting } from "../data/mod.ts";

/** What the processes of a reward may use by default. */
const USUAL = {
  env: [] as string[],
  memory_gib: 8,
  cpu_s: 60,
  file_mib: 1024,
  processes_max: 64,
  isolate: true,
};

/** A limit; null lifts it. The default is not recorded. */
const limit = (usual: number, unit: string, text: string) =>
  z.number().positive().nullable().optional().describe(`${text}. null: no limit; absent: ${usual}.`)
    .register(setting, { unit, resume: "stages" });

/** The store's address and password: they never leave the engine. */
const OF_THE_STORE = /^(HOLDFAST_.*|DATABASE_URL|PG[A-Z]+)$/;
const VariableName = z.string()
  .regex(/^[A-Za-z_]\w*$/, "must be the name of an environment variable")
  .refine((name) => !OF_THE_STORE.test(name), "belongs to the engine and is not passed to workers");

/** What the processes of a reward inherit, and what each may use. */
export const ofProcess = {
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
  const configured = Object.keys(USUAL).map((name) =>
    [name, settings[name as keyof typeof USUAL]] as const
  );
  return { ...USUAL, ...Object.fromEntries(configured.filter(([, value]) => value !== undefined)) };
}
