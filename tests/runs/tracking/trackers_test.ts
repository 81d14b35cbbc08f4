/**
 * Trackers of runs with fake workers, each with its official client in its own process, and read by
 * its own reader. Whatever is killed, a tracker has one run, and every step of it once.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import type { TrackerConfig } from "../../../configs/mod.ts";
import { sha256Hex } from "../../../engine/mod.ts";
import { Home } from "../../../runs/mod.ts";
import { type TrackPoint, TrackPoints } from "../../../runs/tracking/track_points.ts";
import { Trackers } from "../../../runs/tracking/trackers.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { startTracker } from "../../../workers/mod.ts";
import { rowsOf } from "../../flows/fixtures.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

/** The gate names an interpreter that has the clients. */
const python = Deno.env.get("HOLDFAST_TEST_TRACKERS_PYTHON") ?? "";
const ignore = python === "";
const READER = new URL("../../python/trackers/read_trackers.py", import.meta.url).pathname;
const KILLED = new URL("../../python/trackers/killed_tracker.py", import.meta.url).pathname;
const WORKERS = new URL("../../../workers/python", import.meta.url).pathname;

type Name = TrackerConfig["name"];
const NAMES: Name[] = ["tensorboard", "mlflow", "wandb", "trackio"];

/** Settings of each tracker below a directory, and what its reader is given. */
const TRACKED: Record<Name, (home: string) => { settings: Record<string, unknown>; at: string }> = {
  tensorboard: (home) => ({ settings: {}, at: `${home}/runs/a/tensorboard` }),
  mlflow: (home) => ({ settings: { uri: `file://${home}/mlruns` }, at: `file://${home}/mlruns` }),
  wandb: (home) => ({ settings: { mode: "offline" }, at: `${home}/runs/a` }),
  trackio: (home) => ({ settings: {}, at: `${home}/trackio` }),
};

/** A busy machine takes long to import a client. */
const PATIENT = { flush_timeout_s: 900 };

const OVERRIDES = {
  rounds: 5,
  evaluate: { problems: 2 },
  checkpoints: { every_rounds: 1, keep_last: 1 },
};
const ROWS = { train: rowsOf(16), eval: rowsOf(4) };

async function freshRun(): Promise<Home> {
  const home = await freshFakeHome();
  const path = `${home.dir}/train.jsonl`;
  const data = { train: [{ path }], eval: [{ path }], on_long_prompt: "unchecked" };
  await createFakeRun(home, "a", { ...OVERRIDES, data });
  await Deno.mkdir(home.runDir("a"), { recursive: true });
  return home;
}

/** A kill of a tracker's process: at which of its messages with points, and when of it. */
type Kill = { when: "before" | "half" | "after"; nth: number };

type Life = {
  tracked: Record<string, unknown>[];
  /** Each process has one of these kills, in this order; later ones live. */
  kills?: Kill[];
  /** The engine dies at this append, and its trackers with it, after so many answers. */
  crash?: { appends: number; answers: number };
};

/** One engine's life at a run. Returns what it said about its trackers. */
async function life(home: Home, { tracked, kills = [], crash }: Life): Promise<string[]> {
  const store = (home.store as MemoryStore).restarted({ crash_after_appends: crash?.appends });
  const here = new Home(home.dir, { store, artifacts: home.artifacts });
  const head = (await home.store.head("a"))!;
  const lines: string[] = [];
  const remainingKills = [...kills];
  const sent = Promise.withResolvers<void>();
  let answers = 0;
  const trackers = new Trackers(
    // Readers outlive the writer: what is recorded is readable after the engine's death.
    new Home(home.dir, { store: home.store, artifacts: home.artifacts }),
    {
      head,
      config: {
        ...JSON.parse(head.config),
        track: tracked.map((one) => ({ ...one, python, ...PATIENT })),
      },
      owns: () => Promise.resolve(true),
      say: (text) => lines.push(text),
      pause_ms: { first: 0, most: 0 },
      points_max: 2,
      start: async (start) => {
        const kill = remainingKills.shift();
        const args = kill && [KILLED, kill.when, String(kill.nth)];
        const process = await startTracker({ ...start, ...(args && { args }) });
        return {
          ...process,
          ask: async (message) => {
            const answer = await process.ask(message);
            if (++answers === crash?.answers) sent.resolve();
            return answer;
          },
        };
      },
    },
  );
  try {
    // As `track` does for a run that has ended.
    if (head.status === "done") trackers.start(head.epoch);
    else await executeFake(here, "a", { store, rows: ROWS, onEvent: (e) => trackers.on(e) });
    await trackers.close(() => Promise.resolve({ status: "done", card: "# card" }));
  } catch (error) {
    ok(error instanceof Crashed, String(error));
    await sent.promise;
    await trackers.stop();
  }
  return lines;
}

async function pointsOf(home: Home): Promise<TrackPoint[]> {
  const points = new TrackPoints(home, (await home.store.head("a"))!);
  return (await Array.fromAsync(points.next())).flat();
}

type Read = { runs: string[]; values: Record<string, [number, number][]> };

async function read(name: Name, home: Home, run = "a"): Promise<Read> {
  const { at } = TRACKED[name](home.dir);
  const { success, stdout, stderr } = await new Deno.Command(python, {
    args: [READER, name, at, run],
    env: { PYTHONPATH: WORKERS },
  }).output();
  ok(success, new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout).trim().split("\n").at(-1)!);
}

/** Metrics by their names, each with its steps, as trackers should have them. */
function series(points: TrackPoint[]): Read["values"] {
  const values: Read["values"] = {};
  for (const { step, metrics } of points) {
    for (const [name, value] of Object.entries(metrics)) {
      (values[name] ??= []).push([step, Math.fround(value)]);
    }
  }
  return values;
}

/** TensorBoard has 32 bits of a number. What machines do is not in the journal. */
function measured({ values }: Read): Read["values"] {
  return Object.fromEntries(
    Object.entries(values).filter(([name]) => !name.startsWith("system/")).map(([name, all]) => [
      name,
      all.map(([step, value]): [number, number] => [step, Math.fround(value)]),
    ]),
  );
}

/** One run, and every point of the journal once and in order. */
async function isWhole(name: Name, home: Home): Promise<void> {
  const found = await read(name, home);
  deepStrictEqual(found.runs, ["a"]);
  const wanted = series(await pointsOf(home));
  ok(wanted["reward/mean"]!.length === OVERRIDES.rounds);
  deepStrictEqual(measured(found), wanted, name);
}

Deno.test({
  name: "every tracker has each round of a run once, by its own reader",
  ignore,
  fn: async () => {
    const home = await freshRun();
    const tracked = NAMES.map((name) => ({ name, ...TRACKED[name](home.dir).settings }));
    const lines = await life(home, { tracked });
    deepStrictEqual(lines.map((text) => text.split(":")[0]).toSorted(), [
      "tracker mlflow",
      "tracker tensorboard",
      "tracker trackio",
      "tracker wandb",
    ]);
    for (const name of NAMES) await isWhole(name, home);
  },
});

/** Kills of a seed: of up to three processes of a tracker, and of the engine. */
function killsOf(seed: number): Pick<Life, "kills" | "crash"> {
  const draw = (salt: number, count: number) =>
    Number.parseInt(sha256Hex(`${seed}/${salt}`).slice(0, 8), 16) % count;
  const moments = ["before", "half", "after"] as const;
  const kills = Array.from({ length: 1 + draw(0, 3) }, (_, i): Kill => ({
    when: moments[draw(10 + i, 3)]!,
    nth: 1 + draw(20 + i, 2),
  }));
  // How many rows an append has depends on the machine: some engines end before the crash.
  return { kills, crash: { appends: 14 + draw(1, 16), answers: 1 + draw(2, 2) } };
}

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

for (const name of NAMES) {
  for (const seed of SEEDS) {
    Deno.test({
      name: `${name} has every step once after the kills of seed ${seed}, of it and the engine`,
      ignore,
      fn: async () => {
        const home = await freshRun();
        const tracked = [{ name, ...TRACKED[name](home.dir).settings }];
        const { kills, crash } = killsOf(seed);
        await life(home, { tracked, kills, crash });
        await life(home, { tracked, kills: kills!.slice(0, 1) });
        await isWhole(name, home);
      },
    });
  }
}
