import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { loadConfig, type QuickstartConfig } from "../../../configs/mod.ts";
import type { EngineEvent } from "../../../engine/mod.ts";
import { FLOW_GRAPHS, SHIPPED } from "../../../flows/mod.ts";
import { runGraph, type SessionOptions } from "../../../runs/mod.ts";
import type { WorkersEvent } from "../../../workers/mod.ts";
import { Events } from "../../workers/fixtures.ts";
import { noNamespaces } from "./agent_network.ts";
import { orphans, SMALL, withFreshHome } from "../runs.ts";
import { assertEqualEnd, until } from "../survive.ts";
import { TwoHosts } from "./two_hosts.ts";
import { endingOf, type Undisturbed } from "../undisturbed.ts";

const why = await noNamespaces();
const ignore = why !== null && Deno.env.get("CI") !== "true"; // There it is a failure.
if (ignore) console.log(`the tests of two hosts are left out: ${why}`);

/** `quickstart_small`, shorter, with two ranks that train. */
const SHORTER = [
  "trainer.engine=deepspeed",
  "trainer.ranks=2",
  "trainer.zero=1",
  "warmup.rounds=1",
  "online.rounds=3",
  "evaluate.problems=4",
  "checkpoints.every_rounds=2",
];
const ENTRY = `${SHIPPED}quickstart`;

async function play(
  home: string,
  { overrides = [], ...session }: SessionOptions & { overrides?: string[] } = {},
) {
  const { config } = await loadConfig(SMALL, { overrides: [...SHORTER, ...overrides] });
  const options = { config: config as QuickstartConfig, home, id: "run", entry: ENTRY };
  const outcome = await runGraph(FLOW_GRAPHS.quickstart, { ...options, ...session });
  deepStrictEqual([outcome.status, outcome.status === "failed" && outcome.error], ["done", false]);
}

let calm: Promise<Undisturbed> | null = null;

/** The same run on this machine alone: hosts change nothing of what comes out. */
function onOneHost(): Promise<Undisturbed> {
  return calm ??= withFreshHome(async (home) => {
    await play(home);
    return { ...await endingOf({ home, store: null }, "run"), events: [] };
  });
}

type Live = {
  hosts: TwoHosts;
  agents: Events<WorkersEvent>;
  /** Processes of host two when the disturbance began. */
  before: number[];
};

const agent = (id: string, state: string) => (event: WorkersEvent) =>
  event.type === "agent" && event.agent_id === id && event.state === state;

/**
 * Runs it on two hosts: a trainer's rank on each, the sampler on the second. Once a round is
 * closed, `disturb` has its way.
 */
async function onTwoHosts(disturb: (live: Live) => Promise<void>): Promise<void> {
  const against = await onOneHost();
  const hosts = await TwoHosts.create();
  try {
    await withFreshHome(async (home) => {
      const agents = new Events<WorkersEvent>();
      let disturbed: Promise<void> | null = null;
      const onEvent = (event: EngineEvent) => {
        if (event.type !== "round_closed" || event.round !== 1 || event.times === 1) return;
        disturbed ??= hosts.two.pids().then((before) => disturb({ hosts, agents, before }));
        disturbed.catch(() => {}); // Thrown below.
      };
      await play(home, {
        overrides: [
          `workers.host=${hosts.engine}`,
          "workers.silent_s=4",
          "workers.no_progress_s=60",
        ],
        hosts: {
          one: hosts.one.options({ trainer: 1, reward: 1 }),
          two: hosts.two.options({ trainer: 1, sampler: 1 }),
        },
        onEvent,
        onWorkers: agents.push,
      });
      ok(disturbed !== null, "nothing was done to the run");
      await disturbed;
      deepStrictEqual([await orphans(home), await hosts.one.pids(), await hosts.two.pids()], [
        0,
        [],
        [],
      ]);
      strictEqual(
        agents.all.filter((event) => event.type === "agent" && event.agent_id === "one-2").length,
        0,
      );
      await assertEqualEnd({ home, store: null }, "run", against);
    });
  } finally {
    await hosts.close();
  }
}

/** Whether none of these processes lives. */
async function areGone(pids: number[]): Promise<boolean> {
  const states = await Promise.all(
    pids.map((pid) => Deno.stat(`/proc/${pid}`).then(() => true, () => false)),
  );
  return !states.includes(true);
}

const cases: [string, (live: Live) => Promise<void>][] = [
  ["killed with all that runs on it", async ({ hosts, agents }) => {
    await hosts.two.signal("SIGKILL");
    await agents.until(agent("two-2", "attached"));
  }],
  ["frozen", async ({ hosts, agents, before }) => {
    await hosts.two.signal("SIGSTOP");
    await agents.until(agent("two-1", "lost"));
    await agents.until(agent("two-2", "attached"));
    await until("what was frozen is gone", () => areGone(before));
  }],
  [
    "cut off, and comes back when its place is taken: what lived there ends",
    async ({ hosts, agents, before }) => {
      await hosts.two.cable("down");
      await agents.until(agent("two-1", "lost"));
      await agents.until(agent("two-2", "started"));
      ok(!await areGone(before), "nobody was left behind the cut");
      await hosts.two.cable("up");
      await agents.until(agent("two-2", "attached"));
      await until("what was cut off is gone", () => areGone(before));
    },
  ],
];

for (const [what, disturb] of cases) {
  Deno.test({
    name: `one of two hosts is ${what}; the run ends with the same weights`,
    ignore,
    fn: () => onTwoHosts(disturb),
  });
}
