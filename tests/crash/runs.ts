import { fileURLToPath } from "node:url";
import { SqliteStore } from "../../engine/mod.ts";

/** Runs the command line as a user does, and looks at what a run left behind. For tests with real processes. */
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export type Shown = {
  status: string;
  policy: { version: string; digest: string };
  ledger: Record<string, unknown>;
  generated: { groups: number; samples: number; tokens: number };
  recoveries: { cause: string; action: string; batches_redone: number; seconds: number }[];
  round: number;
  evaluations: { name: string; avg_at_k: number; problems: number; failed: number }[];
  metrics: Record<string, number>;
};
export type Finished = { code: number; signal: string | null; output: string };

/** `deno task rl ARGS`, without the task runner between, so that a signal reaches the engine itself. */
export async function rl(args: string[], env: Record<string, string>): Promise<Finished> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", "cli/main.ts", ...args],
    cwd: ROOT,
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
  const { code, signal, stdout, stderr } = await command.output();
  const text = new TextDecoder();
  return { code, signal, output: text.decode(stdout) + text.decode(stderr) };
}

export async function show(home: string, run: string): Promise<Shown> {
  const { code, output } = await rl(["show", run, "--home", home, "--json"], {});
  if (code !== 0) throw new Error(`Cannot show run ${run} in ${home} (exit ${code}):\n${output}`);
  return JSON.parse(output);
}

/** Lets a test home use the Python environments that the repository has made. */
export async function shareEnvironments(home: string): Promise<void> {
  await Deno.mkdir(`${ROOT}.holdfast/env`, { recursive: true });
  await Deno.symlink(`${ROOT}.holdfast/env`, `${home}/env`).catch((cause) => {
    if (!(cause instanceof Deno.errors.AlreadyExists)) throw cause;
  });
}

type Generation = { key: string; groups: number };

async function generations(home: string, run: string): Promise<{ asked: Generation[]; delivered: Set<string> }> {
  const store = new SqliteStore(`${home}/holdfast.db`);
  try {
    const asked = await store.read(run, { kinds: ["note/generation"] });
    const delivered = await store.read(run, { kinds: ["note/generated"] });
    return {
      asked: asked.map((row) => ({ key: row.key, groups: JSON.parse(row.value).groups })),
      delivered: new Set(delivered.map((row) => row.key)),
    };
  } finally {
    await store.close();
  }
}

/** Groups whose generation was asked for and not delivered: what a kill of the engine may cost. */
export async function inFlight(home: string, run: string): Promise<number> {
  const { asked, delivered } = await generations(home, run);
  return asked.filter(({ key }) => !delivered.has(key)).reduce((sum, { groups }) => sum + groups, 0);
}

/** Groups of the largest slab: what the loss of one sampler may cost. */
export async function largestSlab(home: string, run: string): Promise<number> {
  return Math.max(0, ...(await generations(home, run)).asked.map(({ groups }) => groups));
}

/** Processes that still carry this home in their environment; waits for the last of them for 5 s at most. */
export async function orphans(home: string): Promise<number> {
  const deadline = performance.now() + 5000;
  let count = await carrying(home);
  while (count > 0 && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    count = await carrying(home);
  }
  return count;
}

async function carrying(home: string): Promise<number> {
  const real = await Deno.realPath(home);
  let count = 0;
  for await (const entry of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(entry.name) || Number(entry.name) === Deno.pid) continue;
    const environment = await Deno.readTextFile(`/proc/${entry.name}/environ`).catch(() => "");
    if (environment.includes(`HOLDFAST_ARTIFACTS=${real}/`)) count += 1;
  }
  return count;
}
