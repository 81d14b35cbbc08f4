/**
 * What each failure costs: `quickstart_small` is hit once at a seeded event, and its journal says
 * how long it took until a worker did something new. For comparison, the same bench measures a cold
 * start.
 */
import type { JournalRow } from "../engine/mod.ts";
import { Home } from "../runs/mod.ts";
import {
  median,
  numberFlags,
  quickstartPython,
  ROOT,
  rounded,
  withBenchHome,
} from "./quickstart_run.ts";

type Measured = Record<string, number | null>;
/** One line of HOLDFAST_EVENTS. */
type FaultEvent = { place: string; event: string; n: number; phase: string };
type Phase = "generation" | "training";

/** What is done to a run, and whose next result ends the outage. */
type Failure = {
  kind: "kill" | "stop";
  place: string;
  phase: Phase;
  /** Groups whose work stops. */
  waiting: readonly string[];
  /** The workers die with their engine: the next one finds an empty machine. */
  machine?: true;
};

const CONFIG = "configs/quickstart_small.yaml";
const RUN = "bench";
/**
 * Seconds without progress after which a rank counts as hung. The default is minutes; this is for a
 * model that steps in milliseconds.
 */
const HANG_DEADLINE_S = 5;
const BOTH = ["trainer", "sampler"];

const FAILURES: Record<string, Failure> = {
  engine_adopted: { kind: "kill", place: "engine", phase: "training", waiting: BOTH },
  trainer_rank_killed: { kind: "kill", place: "trainer", phase: "training", waiting: ["trainer"] },
  sampler_killed: { kind: "kill", place: "sampler", phase: "generation", waiting: ["sampler"] },
  agent_killed: { kind: "kill", place: "agent", phase: "generation", waiting: BOTH },
  rank_hung: { kind: "stop", place: "trainer", phase: "training", waiting: ["trainer"] },
  machine_started_again: {
    kind: "kill",
    place: "engine",
    phase: "training",
    waiting: BOTH,
    machine: true,
  },
};

/** A stage that often has nothing to do does not show progress. */
const IDLE_STAGES = new Set(["checkpoint_policy"]);

/** `args`: `--repeats N` runs of each failure, 3 by default; medians are reported. */
export async function benchRecovery(args: readonly string[]): Promise<Measured> {
  const { repeats } = numberFlags(args, { repeats: 3 });
  await quickstartPython();
  const calm = await undisturbed();
  const starts = [calm.start_s];
  const measured: Measured = {};
  for (const [name, failure] of Object.entries(FAILURES)) {
    const hits: Hit[] = [];
    for (let i = 0; i < repeats; i++) {
      hits.push(await hit(failure, { calm, at: (i + 0.5) / repeats }));
    }
    starts.push(...hits.map(({ start_s }) => start_s));
    const of = (pick: (one: Hit) => number) => rounded(median(hits.map(pick)));
    measured[`${name}_s`] = of(({ outage_s }) => outage_s);
    measured[`${name}_batches_redone`] = of(({ batches_redone }) => batches_redone);
    measured[`${name}_groups_beyond_in_flight`] = Math.max(
      ...hits.map(({ groups_beyond }) => groups_beyond),
    );
  }
  return {
    cold_start_s: rounded(median(starts)),
    hang_deadline_s: HANG_DEADLINE_S,
    ...measured,
    repeats,
  };
}

type Calm = { events: FaultEvent[]; groups: number; start_s: number };

async function undisturbed(): Promise<Calm> {
  return await withBenchHome(async (dir) => {
    const begun_ms = Date.now();
    const ended = await rl(["run", CONFIG, "--home", dir, "--id", RUN], {
      HOLDFAST_EVENTS: `${dir}/events`,
    });
    if (ended.code !== 0) {
      throw new Error(`Cannot measure because the undisturbed run failed:\n${ended.output}`);
    }
    const events = (await Deno.readTextFile(`${dir}/events`)).trim().split("\n").map((line) =>
      JSON.parse(line)
    );
    const rows = await journal(dir);
    return {
      events,
      groups: groupsOf(rows),
      start_s: (nextResult(rows, { after_ms: begun_ms, of: BOTH }) - begun_ms) / 1000,
    };
  });
}

type Hit = { outage_s: number; batches_redone: number; groups_beyond: number; start_s: number };

/** One run that is hit in the second half of a phase; `at` (0 to 1) says where in it. */
async function hit(failure: Failure, { calm, at }: { calm: Calm; at: number }): Promise<Hit> {
  const { kind, place, phase, waiting, machine } = failure;
  const points = calm.events.filter((event) => event.place === place && event.phase === phase);
  const point = points[Math.floor(points.length * (0.5 + at / 2))]!;
  const fault = `${kind}:${place}@${point.event}:${point.n}`;
  return await withBenchHome(async (dir) => {
    const begun_ms = Date.now();
    const overrides = [`workers.no_progress_s=${HANG_DEADLINE_S}`];
    let ended = await rl(["run", CONFIG, ...overrides, "--home", dir, "--id", RUN], {
      HOLDFAST_FAULT: fault,
    });
    const fault_ms = (await Deno.stat(`${dir}/runs/${RUN}/faults/${fault}`)).mtime!.getTime();
    let from_ms = fault_ms;
    if (ended.signal === "SIGKILL") {
      if (machine) await killWorkers(dir);
      if (machine) from_ms = Date.now(); // The start of the machine does not count.
      ended = await rl(["resume", RUN, "--home", dir], {});
    }
    if (ended.code !== 0) {
      throw new Error(`Cannot measure ${fault} because its run failed:\n${ended.output}`);
    }
    const rows = await journal(dir);
    const recoveries = rows.filter((row) => row.kind === "recovery")
      .map(({ value }) => JSON.parse(value) as { batches_redone?: number });
    const again = groupsOf(rows) - calm.groups;
    return {
      outage_s: (nextResult(rows, { after_ms: from_ms, of: waiting }) - from_ms) / 1000,
      batches_redone: recoveries.reduce((sum, { batches_redone = 0 }) => sum + batches_redone, 0),
      groups_beyond: Math.max(0, again - groupsInFlight(rows, fault_ms)),
      start_s: (nextResult(rows, { after_ms: begun_ms, of: BOTH }) - begun_ms) / 1000,
    };
  });
}

/** When the first result of a group's work was durable after a moment; NaN if none followed. */
export function nextResult(
  rows: JournalRow[],
  { after_ms, of }: { after_ms: number; of: readonly string[] },
): number {
  const working = new Set<string>();
  for (const { kind, key, value, at_ms } of rows) {
    if (kind === "intent") {
      const { runs_on, stage } = JSON.parse(value) as { runs_on: string; stage: string };
      if (of.includes(runs_on) && !IDLE_STAGES.has(stage)) working.add(key);
    }
    if (kind === "result" && working.has(key) && at_ms > after_ms) return at_ms;
  }
  return NaN;
}

function groupsOf(rows: JournalRow[]): number {
  return rows.filter(({ kind }) => kind === "note/generation").reduce(
    (sum, row) => sum + groups(row),
    0,
  );
}

/** Groups requested but not delivered at a moment: they may be sampled again. */
export function groupsInFlight(rows: JournalRow[], at_ms: number): number {
  const before = rows.filter((row) => row.at_ms <= at_ms);
  const delivered = new Set(
    before.filter(({ kind }) => kind === "note/generated").map(({ key }) => key),
  );
  const requested = before.filter(({ kind, key }) =>
    kind === "note/generation" && !delivered.has(key)
  );
  return requested.reduce((sum, row) => sum + groups(row), 0);
}

function groups({ value }: JournalRow): number {
  return (JSON.parse(value) as { groups: number }).groups;
}

async function journal(dir: string): Promise<JournalRow[]> {
  const home = Home.open(dir);
  try {
    return await home.store.read(RUN);
  } finally {
    await home.close();
  }
}

type Ended = { code: number; signal: string | null; output: string };

/** The command line in a separate process. */
async function rl(args: string[], env: Record<string, string>): Promise<Ended> {
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

/** Ends every process of this home, as a machine failure does, and waits until none is left. */
async function killWorkers(dir: string): Promise<void> {
  for (let pids = carriers(dir); pids.length > 0; pids = carriers(dir)) {
    for (const pid of pids) {
      try {
        Deno.kill(pid, "SIGKILL");
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error; // It is gone already.
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Living processes whose artifacts are this home's. */
function carriers(dir: string): number[] {
  const wanted = `HOLDFAST_ARTIFACTS=${Deno.realPathSync(dir)}/`;
  return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name)).filter((pid) => {
    try {
      return Number.isInteger(pid) &&
        Deno.readTextFileSync(`/proc/${pid}/environ`).includes(wanted);
    } catch {
      return false; // Gone in between.
    }
  });
}
