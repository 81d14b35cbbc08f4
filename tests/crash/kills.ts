/**
 * Kills `quickstart_small` at seeded points and holds every run against an undisturbed one.
 *
 *   deno run -A tests/crash/kills.ts [--engine 20] [--trainer 5] [--sampler 5] [--seed 7] [--state DIR] [--page FILE]
 *
 * It continues where it stopped: each finished kill is a line of STATE/kills.jsonl, and the undisturbed run is kept beside it.
 */
import { parseArgs } from "node:util";
import { drawKillPoints, type FaultEvent, faultOf, type KillPoint, PHASES } from "./kill_points.ts";
import { inFlight, largestSlab, orphans, rl, shareEnvironments, show, type Shown } from "./runs.ts";

const CONFIG = "configs/quickstart_small.yaml";

export type Kill = {
  fault: string;
  phase: string;
  fired: boolean;
  engine_died: boolean;
  digest_equal: boolean;
  ledger_equal: boolean;
  batches_redone: number;
  groups_extra: number;
  groups_in_flight: number;
  orphans: number;
  seconds: number;
  status: string;
};
type Baseline = { digest: string; ledger: string; groups: number; events: FaultEvent[] };

/** One undisturbed run, made once and kept. */
async function baseline(state: string): Promise<Baseline> {
  const file = `${state}/baseline.json`;
  const known = await Deno.readTextFile(file).catch(() => null);
  if (known) return JSON.parse(known);
  const home = await freshHome(state, "undisturbed");
  const events = `${state}/events.jsonl`;
  await Deno.remove(events).catch(() => undefined);
  const run = await rl(["run", CONFIG, "--home", home, "--id", "run"], { HOLDFAST_EVENTS: events });
  if (run.code !== 0) {
    throw new Error(`Cannot compare kills as the undisturbed run failed (exit ${run.code}):\n${run.output}`);
  }
  const shown = await show(home, "run");
  const lines = (await Deno.readTextFile(events)).trim().split("\n").map((line) => JSON.parse(line) as FaultEvent);
  const made = {
    digest: shown.policy.digest,
    ledger: JSON.stringify(shown.ledger),
    groups: shown.generated.groups,
    events: lines,
  };
  await Deno.writeTextFile(file, JSON.stringify(made));
  await Deno.remove(home, { recursive: true });
  return made;
}

async function freshHome(state: string, name: string): Promise<string> {
  const home = `${state}/${name}`;
  await Deno.remove(home, { recursive: true }).catch(() => undefined);
  await Deno.mkdir(home, { recursive: true });
  await shareEnvironments(home);
  return home;
}

async function kill(point: KillPoint, options: { state: string; against: Baseline }): Promise<Kill> {
  const { state, against } = options;
  const started = performance.now();
  const home = await freshHome(state, "killed");
  const first = await rl(["run", CONFIG, "--home", home, "--id", "run"], { HOLDFAST_FAULT: faultOf(point) });
  const engineDied = first.signal === "SIGKILL";
  const flying = engineDied ? await inFlight(home, "run") : null;
  if (engineDied) {
    const second = await rl(["resume", "run", "--home", home], {});
    if (second.code !== 0) console.error(second.output);
  } else if (first.code !== 0) console.error(first.output);
  const shown: Shown = await show(home, "run");
  const fired = await Array.fromAsync(Deno.readDir(`${home}/runs/run/faults`)).then(
    (list) => list.length > 0,
    () => false,
  );
  const result: Kill = {
    fault: faultOf(point),
    phase: point.phase,
    fired,
    engine_died: engineDied,
    digest_equal: shown.policy?.digest === against.digest,
    ledger_equal: JSON.stringify(shown.ledger) === against.ledger,
    batches_redone: shown.recoveries.reduce((sum, recovery) => sum + recovery.batches_redone, 0),
    groups_extra: shown.generated.groups - against.groups,
    // A worker that dies loses at most the slab that was being generated then.
    groups_in_flight: flying ?? (point.phase === "generation" ? await largestSlab(home, "run") : 0),
    orphans: await orphans(home),
    seconds: Math.round((performance.now() - started) / 100) / 10,
    status: shown.status,
  };
  await Deno.remove(home, { recursive: true });
  return result;
}

/** Everything that must hold over the whole list; sentences about what does not. */
export function verdicts(kills: Kill[]): string[] {
  const wrong = kills.flatMap((k) => {
    const say = (what: string) => [`${k.fault} (${k.phase}): ${what}`];
    if (!k.fired) return say("the fault never fired");
    if (k.status !== "done") return say(`the run ended as ${k.status}`);
    if (!k.digest_equal) return say("the final weights differ from the undisturbed run's");
    if (!k.ledger_equal) return say("the ledger differs from the undisturbed run's");
    if (k.orphans > 0) return say(`${k.orphans} processes outlived the run`);
    if (k.groups_extra > k.groups_in_flight) {
      return say(`${k.groups_extra} groups made again, ${k.groups_in_flight} in flight`);
    }
    return [];
  });
  const redid = kills.filter((k) => k.batches_redone > 0).length;
  if (redid * 3 < kills.length) wrong.push(`only ${redid} of ${kills.length} kills redid a batch: a third must`);
  const least = kills.length >= 20 ? 3 : 1;
  for (const phase of PHASES) {
    const hits = kills.filter((k) => k.phase === phase).length;
    if (hits < least) wrong.push(`${phase} was hit ${hits} times, fewer than ${least}`);
  }
  return wrong;
}

export function table(kills: Kill[]): string {
  const rows = kills.map((k) =>
    `| \`${k.fault}\` | ${k.phase} | ${k.digest_equal ? "equal" : "DIFFERENT"} | ${
      k.ledger_equal ? "equal" : "DIFFERENT"
    } | ` +
    `${k.batches_redone} | ${k.groups_extra} of ${k.groups_in_flight} | ${k.seconds} |`
  );
  return [
    "| fault | phase | weights | ledger | batches redone | groups made again, of those in flight | seconds, both starts included |",
    "|---|---|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}

/** The page in docs/ that shows one run of the whole list. */
function page(kills: Kill[], seed: number): string {
  const redid = kills.filter((k) => k.batches_redone > 0).length;
  const equal = kills.filter((k) => k.digest_equal && k.ledger_equal).length;
  return `# Killed ${kills.length} times

One command kills \`configs/quickstart_small.yaml\` by SIGKILL at seeded points, resumes it (or lets it heal, where a worker died), and
holds the final weights and the ledger against those of a run that nothing happened to:

    deno run -A tests/crash/kills.ts --page docs/kill_tests.md

A point is an event, not a time: \`kill:engine@append:97\` dies at the engine's 97th durable append, \`frame\` is a message between engine and agent, \`op\`
the begin or end of a worker's operation. The points are drawn from the list of events that the undisturbed run wrote, with seed ${seed}, each phase in
turn. The command continues where it stopped. CI runs ten of them.

Of these ${kills.length} runs ${equal} ended with equal weights (sha256 over all tensors) and an equal ledger; ${redid} had at least one batch to redo from the journal.

${table(kills)}
`;
}

/** Runs the kills that STATE does not hold yet and returns all of them. */
export async function kills(options: { counts: Record<string, number>; seed: number; state: string }): Promise<Kill[]> {
  const { counts, seed, state } = options;
  await Deno.mkdir(state, { recursive: true });
  const against = await baseline(state);
  const file = `${state}/kills.jsonl`;
  const lines = (await Deno.readTextFile(file).catch(() => "")).split("\n").filter(Boolean);
  const done = new Map(lines.map((line) => [(JSON.parse(line) as Kill).fault, JSON.parse(line) as Kill]));
  const points = Object.entries(counts).flatMap(([place, count]) =>
    drawKillPoints(against.events, { place, count, seed })
  );
  const all: Kill[] = [];
  for (const point of points) {
    const known = done.get(faultOf(point));
    const result = known ?? await kill(point, { state, against });
    if (!known) await Deno.writeTextFile(file, JSON.stringify(result) + "\n", { append: true });
    all.push(result);
    console.log(`${all.length}/${points.length} ${JSON.stringify(result)}`);
  }
  return all;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      engine: { type: "string", default: "20" },
      trainer: { type: "string", default: "5" },
      sampler: { type: "string", default: "5" },
      seed: { type: "string", default: "7" },
      state: { type: "string", default: ".holdfast/kills" },
      page: { type: "string" },
    },
  });
  const counts = { engine: Number(values.engine), trainer: Number(values.trainer), sampler: Number(values.sampler) };
  const all = await kills({ counts, seed: Number(values.seed), state: values.state });
  if (values.page) await Deno.writeTextFile(values.page, page(all, Number(values.seed)));
  else console.log(table(all));
  const wrong = verdicts(all);
  for (const sentence of wrong) console.error(sentence);
  Deno.exit(wrong.length ? 1 : 0);
}
