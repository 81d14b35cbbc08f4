/**
 * Two engines serve one store; the one that has the run is killed or frozen at a seeded point, and
 * the other takes it over.
 *
 *   deno run -A tests/crash/engines.ts [--store postgres] [--count 50] [--seed 11] [--state DIR]
 *
 * It continues where it stopped: each finished duel is a line of STATE/duels.STORE.jsonl.
 */
import { parseArgs } from "node:util";
import type { JournalRow } from "../../engine/mod.ts";
import {
  type CampaignStore,
  openCampaignStore,
  type StoreName,
  STORES,
} from "./campaign_stores.ts";
import { drawKillPoints, faultOf, type KillPoint } from "./kill_points.ts";
import { Home } from "../../runs/mod.ts";
import { brokenRules } from "./recorded_rules.ts";
import { at, inFlight, orphans, type Place, recorded, rl, type Running, SMALL } from "./runs.ts";
import { start } from "./runs.ts";
import { isStopped, until } from "./survive.ts";
import { endingOf, otherWork, type Undisturbed, undisturbed } from "./undisturbed.ts";

/** Half of the quickstart's rounds, with a checkpoint in the middle: seconds for each duel. */
const SHORT = [
  "warmup.rounds=2",
  "online.rounds=4",
  "evaluate.problems=4",
  "checkpoints.every_rounds=2",
];
const LEASE_S = 2;
/** A frozen engine wakes when the other has written so many rows at most. */
const ROWS_UNTIL_AWAKE_MAX = 40;

type Duel = {
  store: StoreName;
  fault: string;
  phase: string;
  fired: boolean;
  /** Rows that the second engine had written when the first one woke; null if it was killed. */
  awake_after_rows: number | null;
  /** Milliseconds from the fault to the other engine's claim, and to its first result. */
  taken_ms: number;
  result_ms: number;
  /**
   * Worker processes of the first engine when it was stopped, and how many of them served the
   * second.
   */
  workers: number;
  adopted: number;
  /**
   * Results of worker groups that the second engine recorded: without one it may have ended the run
   * before it met them.
   */
  worker_results: number;
  digest_equal: boolean;
  ledger_equal: boolean;
  broken: string[];
  groups_extra: number;
  groups_in_flight: number;
  orphans: number;
  seconds: number;
  status: string;
};

type Campaign = { state: string; store: CampaignStore; against: Undisturbed };

/**
 * Kills and freezes in turn, up to the engine's last write: after it the run has ended, and there
 * is nothing to take over.
 */
function drawDuels({ events }: Undisturbed, options: { count: number; seed: number }): KillPoint[] {
  const last = events.findLastIndex(({ place, event }) => place === "engine" && event === "append");
  const points = drawKillPoints(events.slice(0, last + 1), { place: "engine", ...options });
  return points.map((point, i) => ({ ...point, kind: i % 2 === 0 ? "kill" : "stop" }));
}

/** One undisturbed run on this store, made once and kept. */
async function baseline(state: string, store: CampaignStore): Promise<Undisturbed> {
  const file = `${state}/undisturbed_short.${store.name}.json`;
  const known = await Deno.readTextFile(file).catch(() => null);
  if (known) return JSON.parse(known) as Undisturbed;
  const reference = await undisturbed(SMALL, { overrides: SHORT, store: store.url });
  await Deno.writeTextFile(file, JSON.stringify(reference));
  return reference;
}

type Engines = { witness: Witness; first: Running; second: Running };

async function duel(point: KillPoint, { state, store, against }: Campaign): Promise<Duel> {
  const started = performance.now();
  const home = `${state}/duel`;
  await Deno.remove(home, { recursive: true }).catch(() => undefined);
  await Deno.mkdir(home, { recursive: true });
  const place: Place = { home, store: store.url };
  const run = `duel-${crypto.randomUUID().slice(0, 8)}`;
  const queue = `queue-${run}`; // The store is shared by all duels.
  const queued = await rl([
    "run",
    SMALL,
    ...SHORT,
    ...at(place),
    "--id",
    run,
    "--detach",
    "--queue",
    queue,
  ], {});
  if (queued.code !== 0) throw new Error(`Cannot queue the run:\n${queued.output}`);
  const serve = [
    "serve",
    ...at(place),
    "--queue",
    queue,
    "--lease-s",
    `${LEASE_S}`,
    "--until-idle",
  ];
  const fault = faultOf(point);
  const first = start(serve, { env: { HOLDFAST_FAULT: fault } });
  const witness = new Witness(place, run);
  await until("the first engine has the run", async () => await witness.owner() === first.pid);
  const second = start(serve);
  const seen = await watch({ witness, first, second }, point);
  await witness.close();
  const [firstEnd, secondEnd] = await Promise.all([first.finished, second.finished]);
  const { head, rows } = await recorded(place, run);
  const ending = await endingOf(place, run);
  const result: Duel = {
    store: store.name,
    fault,
    phase: point.phase,
    ...seen,
    digest_equal: ending.digest === against.digest,
    ledger_equal: ending.ledger === against.ledger,
    broken: [
      ...brokenRules(head, rows),
      ...otherWork(ending, against),
      ...wrongEnds(point, { firstEnd, secondEnd }),
      ...await staleFiles(`${home}/runs/${run}`, second.pid),
    ],
    groups_extra: ending.groups - against.groups,
    orphans: await orphans(home),
    seconds: Math.round((performance.now() - started) / 100) / 10,
    status: head.status,
  };
  if (wrongWith(result).length > 0) {
    console.error(`FIRST:\n${firstEnd.output}\nSECOND:\n${secondEnd.output}`);
  }
  await Deno.remove(home, { recursive: true });
  return result;
}

type Ends = { firstEnd: Awaited<Running["finished"]>; secondEnd: Awaited<Running["finished"]> };

function wrongEnds({ kind }: KillPoint, { firstEnd, secondEnd }: Ends): string[] {
  const died = firstEnd.signal === "SIGKILL";
  const asMeant = kind === "kill" ? died : firstEnd.code === 0;
  return [
    ...(asMeant ? [] : [`the first engine ended with ${firstEnd.signal ?? firstEnd.code}`]),
    ...(secondEnd.code === 0
      ? []
      : [`the second engine ended with ${secondEnd.signal ?? secondEnd.code}`]),
  ];
}

/**
 * What stands beside the journal is the second engine's: each line of metrics once, and the list of
 * workers.
 */
async function staleFiles(dir: string, second: number): Promise<string[]> {
  const lines = (await Deno.readTextFile(`${dir}/metrics.jsonl`)).trim().split("\n");
  const keys = lines.map((line) => (JSON.parse(line) as { key: string }).key);
  const { engine_pid } = JSON.parse(await Deno.readTextFile(`${dir}/workers.json`)) as {
    engine_pid: number;
  };
  return [
    ...(new Set(keys).size === keys.length ? [] : ["the first engine wrote metrics late"]),
    ...(engine_pid === second ? [] : ["the first engine wrote workers.json late"]),
  ];
}

type Seen = Pick<
  Duel,
  | "fired"
  | "awake_after_rows"
  | "taken_ms"
  | "result_ms"
  | "workers"
  | "adopted"
  | "worker_results"
  | "groups_in_flight"
>;

/**
 * Follows a duel to the first result of the second engine, and wakes the first one if it was
 * frozen.
 */
async function watch({ witness, first, second }: Engines, point: KillPoint): Promise<Seen> {
  const frozen = point.kind === "stop";
  let gone = false;
  first.finished.then(() => gone = true);
  await until("the fault has fired", async () => {
    await witness.look();
    return gone || isStopped(first.pid);
  });
  const fired = performance.now();
  const before = await witness.rows();
  const had = witness.workersOf(first.pid);
  await until("the second engine has the run", async () => await witness.owner() === second.pid);
  const taken = performance.now();
  let result_ms: number | null = null;
  const wakeAt = point.n % ROWS_UNTIL_AWAKE_MAX;
  let awake_after_rows: number | null = null;
  await until("the second engine got on", async () => {
    await witness.look();
    const rows = (await witness.rows()).slice(before.length);
    if (result_ms === null && rows.some(({ kind }) => kind === "result")) {
      result_ms = performance.now() - fired;
    }
    const ended = await witness.owner() !== second.pid;
    if (frozen && awake_after_rows === null && (rows.length >= wakeAt || ended)) {
      first.kill("SIGCONT");
      awake_after_rows = rows.length;
    }
    return ended;
  });
  const has = new Set(witness.workersOf(second.pid));
  return {
    fired: true,
    awake_after_rows,
    taken_ms: Math.round(taken - fired),
    result_ms: Math.round(result_ms ?? performance.now() - fired),
    workers: had.length,
    adopted: had.filter((pid) => has.has(pid)).length,
    worker_results: workerResults(await witness.rows(), before.length),
    groups_in_flight: inFlight(before),
  };
}

/** How many results after the first `from` rows are of stages that run on worker groups. */
function workerResults(rows: JournalRow[], from: number): number {
  const intents = rows.filter(({ kind }) => kind === "intent");
  const onWorkers = new Set(
    intents.filter(({ value }) => (JSON.parse(value) as { runs_on: string }).runs_on !== "engine")
      .map(({ key }) => key),
  );
  return rows.slice(from).filter(({ kind, key }) => kind === "result" && onWorkers.has(key)).length;
}

/** Looks at a run from outside its engines. */
class Witness {
  readonly #home: Home;
  readonly #pids = new Map<number, Set<number>>();

  constructor(readonly place: Place, readonly run: string) {
    this.#home = Home.open(place.home, { store: place.store });
  }

  async owner(): Promise<number | null> {
    return (await this.#home.store.head(this.run))?.owner?.pid ?? null;
  }

  rows(): Promise<JournalRow[]> {
    return this.#home.store.read(this.run);
  }

  /** Notes which worker processes the engine has, as its own file tells. */
  async look(): Promise<void> {
    const text = await Deno.readTextFile(`${this.place.home}/runs/${this.run}/workers.json`).catch(
      () => null,
    );
    if (text === null) return;
    const { engine_pid, workers } = JSON.parse(text) as {
      engine_pid: number;
      workers: { pid: number | null }[];
    };
    const known = this.#pids.get(engine_pid) ?? new Set();
    for (const { pid } of workers) if (pid !== null) known.add(pid);
    this.#pids.set(engine_pid, known);
  }

  /** Every worker process that an engine had. */
  workersOf(engine: number): number[] {
    return [...(this.#pids.get(engine) ?? [])];
  }

  close(): Promise<void> {
    return this.#home.close();
  }
}

/** Sentences about what of a duel is not as it must be. */
export function wrongWith(d: Duel): string[] {
  const faults = [...d.broken];
  if (!d.fired) faults.push("its fault never fired");
  if (d.status !== "done") faults.push(`the run ended as ${d.status}`);
  if (!d.digest_equal) faults.push("the final weights differ from the undisturbed run's");
  if (!d.ledger_equal) faults.push("the ledger differs from the undisturbed run's");
  if (d.orphans > 0) faults.push(`${d.orphans} processes outlived the run`);
  if (d.adopted < d.workers && d.worker_results > 0) {
    faults.push(`${d.adopted} of ${d.workers} workers were adopted`);
  }
  // An engine that dies between recording what it asks for and asking has it asked for again.
  if (d.groups_extra > d.groups_in_flight) {
    faults.push(`${d.groups_extra} groups asked for again, ${d.groups_in_flight} in flight`);
  }
  return faults;
}

type CampaignOptions = { store: StoreName; count: number; seed: number; state: string };

/** Runs the duels that STATE does not hold yet and returns all of them. */
export async function duels({ store: name, count, seed, state }: CampaignOptions): Promise<Duel[]> {
  await Deno.mkdir(state, { recursive: true });
  const store = await openCampaignStore(name);
  try {
    const campaign = { state, store, against: await baseline(state, store) };
    const file = `${state}/duels.${name}.jsonl`;
    const lines = (await Deno.readTextFile(file).catch(() => "")).split("\n").filter(Boolean);
    const done = new Map(
      lines.map((line) => JSON.parse(line) as Duel).map((known) => [known.fault, known]),
    );
    const all: Duel[] = [];
    for (const point of drawDuels(campaign.against, { count, seed })) {
      const known = done.get(faultOf(point));
      const result = known ?? await duel(point, campaign);
      if (!known) await Deno.writeTextFile(file, JSON.stringify(result) + "\n", { append: true });
      all.push(result);
      const wrong = wrongWith(result);
      console.log(
        `${all.length}/${count} ${wrong.length ? `WRONG: ${wrong.join("; ")} ` : ""}${
          JSON.stringify(result)
        }`,
      );
    }
    return all;
  } finally {
    await store.close();
  }
}

/** What fifty duels came to, in four lines. */
function summary(all: Duel[]): string {
  const median = (of: (d: Duel) => number) =>
    all.map(of).toSorted((a, b) => a - b)[Math.floor(all.length / 2)];
  const sum = (of: (d: Duel) => number) => all.reduce((total, d) => total + of(d), 0);
  const killed = all.filter(({ awake_after_rows }) => awake_after_rows === null).length;
  return [
    `${all.length} duels: ${killed} engines killed, ${all.length - killed} frozen and woken`,
    `${all.filter((d) => wrongWith(d).length === 0).length} ended as the undisturbed run`,
    `${sum((d) => d.adopted)} of ${sum((d) => d.workers)} workers adopted, ${
      sum((d) => d.groups_extra)
    } groups asked for again`,
    `median: taken over after ${median((d) => d.taken_ms)} ms, next result after ${
      median((d) => d.result_ms)
    } ms`,
  ].join("\n");
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      store: { type: "string", default: "postgres" },
      count: { type: "string", default: "50" },
      seed: { type: "string", default: "11" },
      state: { type: "string", default: ".holdfast/duels" },
    },
  });
  const store = STORES.find((name) => name === values.store);
  if (!store) {
    throw new RangeError(`Cannot use --store ${values.store}: it is one of ${STORES.join(", ")}`);
  }
  const all = await duels({
    store,
    count: Number(values.count),
    seed: Number(values.seed),
    state: values.state,
  });
  console.log(summary(all));
  Deno.exit(all.every((d) => wrongWith(d).length === 0) ? 0 : 1);
}
