/**
 * Kills `quickstart_small` at seeded points and holds every run against an undisturbed one.
 *
 *   deno run -A tests/crash/kills.ts [--store both] [--count 100] [--seed 7] [--state DIR] [--page
 *   FILE]
 *
 * It continues where it stopped: each finished kill is a line of STATE/kills.jsonl, and the
 * undisturbed runs are kept beside it.
 */
import { parseArgs } from "node:util";
import {
  type CampaignStore,
  openCampaignStore,
  type StoreName,
  STORES,
} from "./campaign_stores.ts";
import {
  drawKillPoints,
  drawPairs,
  type FaultEvent,
  faultOf,
  type KillPoint,
  PHASES,
} from "./kill_points.ts";
import { type Kill, killsPage, summary } from "./kill_report.ts";
import { brokenRules } from "./recorded_rules.ts";
import { largestSlab, orphans, recorded, show, SMALL } from "./runs.ts";
import { survive } from "./survive.ts";
import { endingOf, otherWork, type Undisturbed, undisturbed } from "./undisturbed.ts";

/** Short, so that what is frozen is soon taken for hung. They change no number that is computed. */
const LIMITS = ["workers.no_progress_s=8"];

/**
 * How many of a hundred kills are of each kind. The first ones of a list are a fair part of it,
 * however many.
 */
const MIX = { engine: 18, agent: 17, trainer: 19, sampler: 8, frozen: 8, pair: 30 } as const;
const FROZEN = ["trainer", "sampler", "agent"];

type Case = { store: StoreName; points: KillPoint[] };
type Campaign = { state: string; store: CampaignStore; against: Undisturbed };

/** The list of a store's kills. */
function drawCases(
  events: FaultEvent[],
  options: { store: StoreName; count: number; seed: number },
): Case[] {
  const { store, count } = options;
  const seed = options.seed + 1000 * STORES.indexOf(store); // Each store has points of its own.
  const single = (place: string, n: number) =>
    drawKillPoints(events, { place, count: n, seed }).map((point) => [point]);
  const frozen = FROZEN.flatMap((place) =>
    drawKillPoints(events, { place, count: MIX.frozen, seed: seed + 1 }).map((point) => ({
      ...point,
      kind: "stop" as const,
    }))
  );
  const inTurn = frozen.map((_, i) =>
    frozen[(i % FROZEN.length) * MIX.frozen + Math.floor(i / FROZEN.length)]!
  );
  const drawn: Record<keyof typeof MIX, KillPoint[][]> = {
    engine: single("engine", MIX.engine),
    agent: single("agent", MIX.agent),
    trainer: single("trainer", MIX.trainer),
    sampler: single("sampler", MIX.sampler),
    frozen: inTurn.slice(0, MIX.frozen).map((point) => [point]),
    pair: drawPairs(events, { count: MIX.pair, seed }),
  };
  const ordered = Object.values(drawn).flatMap((list) =>
    list.map((points, i) => ({ points, order: (i + 0.5) / list.length }))
  );
  return ordered.toSorted((a, b) => a.order - b.order).slice(0, count).map(({ points }) => ({
    store,
    points,
  }));
}

/** One undisturbed run on this store, made once and kept. */
async function baseline(state: string, store: CampaignStore): Promise<Undisturbed> {
  const file = `${state}/undisturbed.${store.name}.json`;
  const known = await Deno.readTextFile(file).catch(() => null);
  if (known) return JSON.parse(known);
  const reference = await undisturbed(SMALL, { overrides: LIMITS, store: store.url });
  await Deno.writeTextFile(file, JSON.stringify(reference));
  return reference;
}

async function kill(
  { points, store }: Case,
  { state, against, store: { url } }: Campaign,
): Promise<Kill> {
  const started = performance.now();
  const home = `${state}/killed`;
  await Deno.remove(home, { recursive: true }).catch(() => undefined);
  await Deno.mkdir(home, { recursive: true });
  const place = { home, store: url };
  const run = `run-${crypto.randomUUID().slice(0, 8)}`;
  const fault = faultOf(...points);
  const { deaths, flying, last } = await survive(place, {
    run,
    config: SMALL,
    overrides: LIMITS,
    fault,
  });
  if (last.code !== 0) console.error(last.output);
  const { head, rows } = await recorded(place, run);
  const shown = await show(home, run, url);
  const ending = await endingOf(place, run);
  const marks = await Array.fromAsync(Deno.readDir(`${home}/runs/${run}/faults`)).catch(() => []);
  // A sampler that dies, alone or with its agent, loses at most the slab that was being generated
  // then.
  const samplerDeaths =
    points.filter(({ place }) => place === "sampler" || place === "agent").length;
  const result: Kill = {
    store,
    fault,
    places: points.map(({ kind, place }) => kind === "stop" ? `${place} (frozen)` : place),
    phase: points[0]!.phase,
    fired: marks.length,
    faults: points.length,
    engine_deaths: deaths,
    digest_equal: ending.digest === against.digest,
    ledger_equal: ending.ledger === against.ledger,
    broken: [...brokenRules(head, rows), ...otherWork(ending, against)],
    batches_redone: shown.recoveries.reduce((sum, recovery) => sum + recovery.batches_redone, 0),
    groups_extra: ending.groups - against.groups,
    groups_in_flight: flying + samplerDeaths * largestSlab(rows),
    orphans: await orphans(home),
    seconds: Math.round((performance.now() - started) / 100) / 10,
    status: shown.status,
  };
  await Deno.remove(home, { recursive: true });
  return result;
}

/** Everything that must hold over the whole list; sentences about what does not. */
export function verdicts(kills: Kill[]): string[] {
  const wrong = kills.flatMap((k) =>
    wrongWith(k).map((what) => `${k.fault} (${k.store}, ${k.phase}): ${what}`)
  );
  const redid = kills.filter((k) => k.batches_redone > 0).length;
  if (redid === 0) wrong.push("no kill redid a batch");
  if (kills.length < 20) return wrong; // Too few to hit everything.
  if (redid * 3 < kills.length) {
    wrong.push(`only ${redid} of ${kills.length} kills redid a batch: a third must`);
  }
  for (const phase of PHASES) {
    const hits = kills.filter((k) => k.phase === phase).length;
    if (hits < 3) wrong.push(`${phase} was hit ${hits} times, fewer than 3`);
  }
  return wrong;
}

function wrongWith(k: Kill): string[] {
  const faults = [...k.broken];
  if (k.fired < k.faults) {
    faults.push(`${k.faults - k.fired} of its ${k.faults} faults never fired`);
  }
  if (k.status !== "done") faults.push(`the run ended as ${k.status}`);
  if (!k.digest_equal) faults.push("the final weights differ from the undisturbed run's");
  if (!k.ledger_equal) faults.push("the ledger differs from the undisturbed run's");
  if (k.orphans > 0) faults.push(`${k.orphans} processes outlived the run`);
  if (k.groups_extra > k.groups_in_flight) {
    faults.push(`${k.groups_extra} groups made again, ${k.groups_in_flight} in flight`);
  }
  return faults;
}

type CampaignOptions = { stores: readonly StoreName[]; count: number; seed: number; state: string };

/** Runs the kills that STATE does not hold yet, the stores in turn, and returns all of them. */
export async function kills(options: CampaignOptions): Promise<Kill[]> {
  const { stores, count, seed, state } = options;
  await Deno.mkdir(state, { recursive: true });
  const open: CampaignStore[] = [];
  try {
    for (const name of stores) open.push(await openCampaignStore(name));
    const campaigns: Campaign[] = [];
    for (const store of open) {
      campaigns.push({ state, store, against: await baseline(state, store) });
    }
    mustAgree(campaigns);
    const lists = campaigns.map(({ store: { name }, against }) =>
      drawCases(against.events, { store: name, count, seed })
    );
    const all = await Array.fromAsync(runAll(campaigns, lists));
    return all;
  } finally {
    for (const store of open) await store.close();
  }
}

function mustAgree([first, ...others]: Campaign[]): void {
  for (const { store, against } of others) {
    if (against.digest === first!.against.digest && against.ledger === first!.against.ledger) {
      continue;
    }
    throw new Error(
      `Cannot compare kills because the undisturbed runs on ${
        first!.store.name
      } and ${store.name} differ`,
    );
  }
}

async function* runAll(campaigns: Campaign[], lists: Case[][]): AsyncGenerator<Kill> {
  const file = `${campaigns[0]!.state}/kills.jsonl`;
  const lines = (await Deno.readTextFile(file).catch(() => "")).split("\n").filter(Boolean);
  const done = new Map(
    lines.map((line) => JSON.parse(line) as Kill).map((k) => [`${k.store} ${k.fault}`, k]),
  );
  const whole = lists.reduce((sum, list) => sum + list.length, 0);
  let count = 0;
  for (let i = 0; lists.some((list) => i < list.length); i++) {
    for (const [which, list] of lists.entries()) {
      const next = list[i];
      if (!next) continue;
      const known = done.get(`${next.store} ${faultOf(...next.points)}`);
      const result = known ?? await kill(next, campaigns[which]!);
      if (!known) await Deno.writeTextFile(file, JSON.stringify(result) + "\n", { append: true });
      count += 1;
      const wrong = wrongWith(result);
      console.log(
        `${count}/${whole} ${wrong.length ? `WRONG: ${wrong.join("; ")} ` : ""}${
          JSON.stringify(result)
        }`,
      );
      yield result;
    }
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      store: { type: "string", default: "both" },
      count: { type: "string", default: "100" },
      seed: { type: "string", default: "7" },
      state: { type: "string", default: ".holdfast/kills" },
      page: { type: "string" },
    },
  });
  const stores = values.store === "both" ? STORES : STORES.filter((name) => name === values.store);
  if (stores.length === 0) {
    throw new RangeError(`Cannot use --store ${values.store}: it is sqlite, postgres or both`);
  }
  const seed = Number(values.seed);
  const all = await kills({ stores, count: Number(values.count), seed, state: values.state });
  if (values.page) await Deno.writeTextFile(values.page, killsPage(all, seed));
  else console.log(summary(all));
  const wrong = verdicts(all);
  for (const sentence of wrong) console.error(sentence);
  Deno.exit(wrong.length ? 1 : 0);
}
