import { z } from "zod";
import { setting } from "../data/mod.ts";
import {
  defineProcessReward,
  graderSetting,
  type ProcessReward,
  type RewardRow,
} from "./define.ts";
import { processOf } from "./process_limits.ts";

/** The grader in Python that the reward worker imports, and gives {@linkcode codeSettings}. */
const SOURCE = "holdfast_worker.rewards.graders.code_answer:grader";

/**
 * Columns that cases are read from, in this order; `code_cases.py` has the same. The last is the
 * row's reference answer.
 */
const COLUMNS = [
  "test_cases",
  "input_output",
  "public_test_cases",
  "verification_info",
  "test_list",
  "tests",
  "test",
  "unit_tests",
  "answer",
];
/**
 * By the clock, a program may take this many times its CPU time: how much a busy machine slows it
 * decides nothing.
 */
const SLOWED = 4;
/** Starting sandboxes is in no program's time, but in the call's. */
const STARTS_MS = 120_000;
/** The grader limits its programs itself. */
const PROCESS = { memory_gib: null, cpu_s: null, file_mib: null, processes_max: 1024 };

const limit = (usual: number, unit: string, text: string) =>
  z.int().positive().default(usual).describe(text).register(setting, { ...graderSetting, unit });

const /** @internal */ config = z.strictObject({
  language: z.literal("python").default("python").describe("The programs' language.")
    .register(setting, graderSetting),
  sandbox: z.enum(["pyodide", "process"]).default("pyodide").describe(
    "Where programs run. pyodide: Python in WebAssembly, in a Deno process without permissions. " +
      "process: CPython in separate Linux namespaces.",
  ).register(setting, graderSetting),
  without_namespaces: z.enum(["refuse", "accept"]).default("refuse").describe(
    "With `process`, where the kernel allows no namespaces. accept: programs have limits, but " +
      "can read files and use the network.",
  ).register(setting, { ...graderSetting, resume: "stages" }),
  credit: z.enum(["fraction", "all"]).default("fraction").describe(
    "fraction: the score is the share of right cases. all: 1 if every case is right, else 0.",
  ).register(setting, graderSetting),
  tests: z.string().min(1).optional().describe(
    "The column that has the cases; absent: the first one with a usual name, or the answer.",
  ).register(setting, graderSetting),
  case_timeout_ms: limit(
    5_000,
    "ms",
    "CPU time of one case: one that needs more is not right.",
  ),
  timeout_ms: limit(
    30_000,
    "ms",
    "CPU time of all cases together; what they do not reach is not right.",
  ),
  memory_mib: limit(1024, "MiB", "Memory of each process of a program."),
  file_mib: limit(16, "MiB", "Files of a program, together."),
  output_kib: limit(1024, "KiB", "What a program may print in one case."),
  processes_max: limit(16, "processes", "Concurrent processes and threads of a program."),
});
/** @internal */
type Settings = z.output<typeof config>;

/** What a program does on a row's cases. It runs in the reward's processes, in a sandbox. */
export const code: ProcessReward<"code", typeof config.shape> = defineProcessReward({
  name: "code",
  about: "The share of the row's cases that the program in the completion gets right.",
  runs_on: "process",
  kept: { by: "code", usually: true },
  right_at: 1,
  config,
  check: requireCases,
  asks: (settings) => ({
    source: SOURCE,
    timeout_ms: settings.timeout_ms * SLOWED + STARTS_MS,
    process: processOf(PROCESS),
    style: "holdfast",
    settings: codeSettings(settings),
  }),
});

/** What the grader receives: settings, and where this machine has Deno and Pyodide. */
export function codeSettings({ language: _, ...settings }: Settings): Record<string, unknown> {
  const runtime = {
    deno: Deno.execPath(),
    host: pathOf(new URL("./pyodide_host.ts", import.meta.url)),
    // A pinned package: Deno has it in its cache whenever this file runs.
    pyodide: pathOf(new URL(".", import.meta.resolve("pyodide"))).replace(/\/$/, ""),
  };
  return { ...settings, tests: settings.tests ?? null, slowed: SLOWED, runtime };
}

/** @throws {RangeError} If the row has nothing that may be cases. */
function requireCases(row: RewardRow, { tests }: Pick<Settings, "tests">): void {
  const names = tests === undefined ? COLUMNS : [tests];
  const isPresent = (value: unknown) =>
    (value ?? "") !== "" && !(typeof value === "object" && Object.keys(value!).length === 0);
  if (names.some((name) => isPresent(row[name]))) return;
  throw new RangeError(
    `Cannot score with code because the row has no cases: none of ${names.join(", ")}`,
  );
}

function pathOf(url: URL): string {
  return decodeURIComponent(url.pathname);
}
