/** A run's groups on GPUs that several hosts announce: the whole way, with fake agents. */
import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { parseConfig } from "../../../configs/mod.ts";
import { ArtifactStore, InfrastructureError } from "../../../engine/mod.ts";
import { workerBlocks } from "../../../runs/session/worker_blocks.ts";
import { WorkerGroups } from "../../../runs/session/worker_groups.ts";
import { FakeFailure, fakeLauncher, type FakeScript } from "../../../testing/mod.ts";
import type { HostOptions, Launcher, WorkersEvent } from "../../../workers/mod.ts";
import { Events, withHome } from "../../workers/fixtures.ts";

type Agents = ReturnType<typeof fakeLauncher>["agents"];
type Bench = {
  groups: WorkerGroups;
  events: Events<WorkersEvent>;
  artifacts: ArtifactStore;
  /** By host. */
  agents: Record<string, Agents>;
  next: () => Promise<{ groups: WorkerGroups; events: Events<WorkersEvent> }>;
};
type Script = { gpus: string[]; operations?: FakeScript["operations"]; starts?: number };

const SMALL = new URL("../../../configs/quickstart_small.yaml", import.meta.url);
const OVERRIDES = [
  "trainer.engine=deepspeed",
  "trainer.device=cuda",
  "trainer.ranks=2",
  "sampler.device=cuda",
];
const MEASURED = { rows: 0, model_tokens_max: null };
const CALL = { key: "k", attempt: 1 };
const CALLER = { ...CALL, record: () => Promise.resolve() };

/** Hosts that announce GPUs, and the groups of a configuration on them. */
function withHosts(
  scripts: Record<string, Script>,
  body: (bench: Bench) => Promise<void>,
  overrides: string[] = [],
): Promise<void> {
  return withHome(async (home) => {
    const text = await Deno.readTextFile(SMALL);
    const options = { file: SMALL.pathname, overrides: [...OVERRIDES, ...overrides] };
    const { config } = await parseConfig(text, options);
    const hosts: Record<string, HostOptions> = {};
    const agents: Record<string, Agents> = {};
    for (const [host, { gpus, operations, starts = Infinity }] of Object.entries(scripts)) {
      const trainer = { measure_rows: () => MEASURED, ...operations?.trainer };
      const fake = fakeLauncher({ gpus, operations: { trainer } });
      hosts[host] = { launcher: limited(fake.launcher, starts), interface: "eth0" };
      agents[host] = fake.agents;
    }
    const engines: WorkerGroups[] = [];
    const artifacts = new ArtifactStore(`${home}/artifacts`);
    const next = () => {
      const epoch = engines.length + 1;
      const events = new Events<WorkersEvent>();
      const groups = new WorkerGroups({
        run: "run",
        home,
        hosts,
        blocks: workerBlocks(config)!,
        artifacts,
        recorded: [],
        python: () => Promise.resolve("python3"),
        owns: (one) => Promise.resolve(one === engines.length),
        onEvent: events.push,
      });
      engines.push(groups);
      groups.start(epoch);
      return Promise.resolve({ groups, events });
    };
    try {
      await body({ ...await next(), artifacts, agents, next });
    } finally {
      for (const engine of engines.toReversed()) await engine.stop();
    }
  });
}

/** A host that comes so many times. */
function limited({ start, find }: Launcher, times: number): Launcher {
  let starts = 0;
  return {
    find,
    start: (agent) => {
      if (++starts > times) throw new InfrastructureError("Cannot start the agent: no route");
      return start(agent);
    },
  };
}

const isReady = (group: string, generation = 1) => (event: WorkersEvent) =>
  event.type === "group" && event.group === group && event.state === "ready" &&
  event.generation === generation;

/** `GROUP/GENERATION RANKS@GPUS` of every start that a host's agents received. */
function starts(agents: Agents): string[] {
  return agents.flatMap(({ received }) => received).flatMap((message) =>
    message.type === "start_group"
      ? [
        `${message.group}/${message.generation} ${message.part?.ranks ?? message.ranks}@` +
        `${message.env.CUDA_VISIBLE_DEVICES}`,
      ]
      : []
  );
}

Deno.test("a trainer gets a host that has GPUs for all ranks, the sampler what is left", () =>
  withHosts({ one: { gpus: ["0"] }, two: { gpus: ["4", "5"] } }, async ({ events, agents }) => {
    await Promise.all(["trainer", "sampler/0"].map((group) => events.until(isReady(group))));
    deepStrictEqual([starts(agents.one!), starts(agents.two!)], [
      ["sampler/0/1 1@0"],
      ["trainer/1 2@4,5"],
    ]);
  }));

Deno.test("a trainer wider than any host is on several, each rank with a GPU of its host", () =>
  withHosts({ one: { gpus: ["0"] }, two: { gpus: ["4"] } }, async ({ events, agents }) => {
    await Promise.all(["trainer", "sampler/0"].map((group) => events.until(isReady(group))));
    deepStrictEqual([starts(agents.one!).toSorted(), starts(agents.two!)], [
      ["sampler/0/1 1@0", "trainer/1 1@0"],
      ["trainer/1 1@4"],
    ]);
  }));

Deno.test("a broken GPU is replaced by one of another host", () => {
  let broken = true;
  const measure_rows = () => {
    if (!broken) return MEASURED;
    broken = false;
    throw new FakeFailure({
      rank: 1,
      cause: "other",
      exception: "torch.AcceleratorError",
      message: "CUDA error: uncorrectable ECC error encountered",
    });
  };
  const one = { gpus: ["0", "1"], operations: { trainer: { measure_rows } } };
  return withHosts({ one, two: { gpus: ["4", "5", "6"] } }, async (bench) => {
    const { groups, events, agents, artifacts } = bench;
    await events.until(isReady("trainer"));
    await events.until(isReady("sampler/0"));
    const rows = await artifacts.putJson([]);
    const input = { model_path: "m", use: "prompt" as const, rows, chat: null };
    await rejects(groups.trainer.measureRows(input, CALLER), /uncorrectable ECC error/);
    await events.until(isReady("trainer", 2));
    deepStrictEqual([starts(agents.one!), starts(agents.two!)], [
      ["trainer/1 2@0,1"],
      ["sampler/0/1 1@4", "trainer/2 2@5,6"],
    ]);
  });
});

Deno.test("groups with GPUs move off a host that is given up", () =>
  withHosts({ one: { gpus: ["0", "1"], starts: 1 }, two: { gpus: ["4", "5", "6"] } }, async (
    { events, agents, groups },
  ) => {
    await events.until(isReady("trainer"));
    await events.until(isReady("sampler/0"));
    agents.one![0]!.exit();
    await events.until(isReady("trainer", 2));
    deepStrictEqual(starts(agents.two!), ["sampler/0/1 1@4", "trainer/2 2@5,6"]);
    strictEqual(groups.trainers.length, 1);
  }));

Deno.test("the next engine adopts the groups on their GPUs", () =>
  withHosts({ one: { gpus: ["0"] }, two: { gpus: ["4"] } }, async ({ events, agents, next }) => {
    await Promise.all(["trainer", "sampler/0"].map((group) => events.until(isReady(group))));
    const second = await next();
    await Promise.all(["trainer", "sampler/0"].map((group) => second.events.until(isReady(group))));
    deepStrictEqual([agents.one!.length, agents.two!.length], [1, 1]);
    deepStrictEqual(starts(agents.two!), ["trainer/1 1@4"]);
  }));

Deno.test("hosts with too few GPUs fail the first operation, with what each has", () =>
  withHosts({ one: { gpus: ["0"] }, two: { gpus: [] } }, async ({ groups, artifacts }) => {
    const rows = await artifacts.putJson([]);
    const input = { model_path: "m", use: "prompt" as const, rows, chat: null };
    const error = await groups.trainer.measureRows(input, CALLER).catch((error) => error as Error);
    match((error as Error).message, /Cannot place trainer .* \(one: 1, two: 0\)/);
  }));
