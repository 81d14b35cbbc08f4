/**
 * What a new kind of worker takes: one declaration (`tracker.ts`) and one line of the table, which
 * is `TABLE` here. Nothing else of the engine is told of it.
 */
import { deepStrictEqual, match, notStrictEqual, rejects, strictEqual } from "node:assert/strict";
import process from "node:process";
import { z } from "zod";
import { parseConfig } from "../../../configs/mod.ts";
import { ArtifactStore, defineStage, Engine, graph, provide } from "../../../engine/mod.ts";
import { workerBlocks } from "../../../runs/session/worker_blocks.ts";
import { WorkerGroups } from "../../../runs/session/worker_groups.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import {
  operationPhase,
  placeGpus,
  plannedGroups,
  pythonTypesTexts,
  ROLES,
  workersOf,
} from "../../../workers/mod.ts";
import { parseFaults } from "../../../workers/failures/faults.ts";
import { withHome } from "../fixtures.ts";
import { trackerRole } from "./tracker.ts";

const TABLE = [
  ...ROLES,
  trackerRole,
];

const SMALL = new URL("../../../configs/quickstart_small.yaml", import.meta.url);
const PYTHON_TESTS = new URL("../../python", import.meta.url).pathname;
/** The gate names an interpreter that has the agent's packages. */
const python = Deno.env.get("HOLDFAST_TEST_PYTHON") ?? "";

/** A run's configuration, and in it the role's block if there is one. */
async function blocksWith(tracker?: object) {
  const { config } = await parseConfig(await Deno.readTextFile(SMALL), { file: SMALL.pathname });
  return workerBlocks({ ...config, ...(tracker && { tracker }) }, TABLE)!;
}

Deno.test("a role with a block has groups, on GPUs that others leave", async () => {
  const machine = { env: {}, devices: ["nvidia0", "nvidia1", "nvidia2", "nvidia3"] };
  const planned = plannedGroups(await blocksWith({ replicas: 2, scale: 3 }), TABLE);
  deepStrictEqual([...planned.keys()], [
    "trainer",
    "sampler/0",
    "reward",
    "tracker/0",
    "tracker/1",
  ]);
  deepStrictEqual(planned.get("tracker/1")!.spec, { scale: 3 });
  const places = placeGpus([...planned.values()], machine);
  deepStrictEqual(
    ["trainer", "sampler/0", "tracker/0", "tracker/1"].map((name) => places[name]!.visible),
    [["0"], ["1"], ["2"], ["3"]],
  );
  deepStrictEqual([...plannedGroups(await blocksWith(), TABLE).keys()], [
    "trainer",
    "sampler/0",
    "reward",
  ]);
  await rejects(blocksWith({ replicas: 0 }), /replicas/);
});

Deno.test("a role has types and phases in both languages, and is a place of faults", () => {
  const { types, answers } = pythonTypesTexts(TABLE);
  match(types, /^ROLES = \("trainer", "sampler", "reward", "tracker"\)$/m);
  match(types, /^ {4}\("tracker", "follow"\): "generation",$/m);
  match(types, /^class TrackerFollow\(Received, .*\):\n {4}map: str\n {4}frames: list\[Frame\]$/m);
  match(
    answers,
    /^class TrackerFollowAnswer\(TypedDict\):\n {4}pid: int\n {4}seen: list\[Seen\]$/m,
  );
  deepStrictEqual([
    operationPhase("tracker", "follow", TABLE),
    operationPhase("tracker", "open", TABLE),
  ], [
    "generation",
    "other",
  ]);
  const [fault] = parseFaults("kill:tracker@op:2", TABLE.map(({ name }) => name));
  strictEqual(fault!.place, "tracker");
});

const FRAMES = [{ x: 1, label: null }, { x: 2, label: "cat" }];
const SEEN = [{ at: "town:3", label: null }, { at: "town:6", label: "cat" }];
type Answer = { pid: number; seen: unknown };

const follow = defineStage({
  name: "follow",
  version: 1,
  runs_on: "tracker",
  input: z.strictObject({ map: z.string(), after: z.unknown() }),
  output: z.strictObject({ pid: z.int(), seen: z.unknown() }),
  async run({ map }, ctx): Promise<Answer> {
    const { answers: [answer] } = await ctx.resource(workersOf(trackerRole))
      .ask("follow", { map, frames: FRAMES }, ctx);
    return answer;
  },
});
const kill = defineStage({
  name: "kill",
  version: 1,
  input: z.strictObject({ pid: z.int() }),
  output: z.boolean(),
  run: ({ pid }) => process.kill(pid, "SIGKILL"),
});

/** Followed, killed, followed again by a worker that holds no map. */
const followed = graph("followed", z.strictObject({}), (g) => {
  const before = g.stage(follow, { map: "town", after: null });
  const killed = g.stage(kill, { pid: before.field("pid") });
  return { before, after: g.stage(follow, { map: "town", after: killed }) };
});

/** Workers of a run with one tracker. Its types are what `deno task schema` would write. */
async function withTracker(
  work: (groups: WorkerGroups, home: string) => Promise<void>,
): Promise<void> {
  await withHome(async (home) => {
    await Deno.writeTextFile(`${home}/tracker_types.py`, pythonTypesTexts(TABLE).types);
    const blocks = await blocksWith({ scale: 3, device: "cpu", path: `${PYTHON_TESTS}:${home}` });
    const groups = new WorkerGroups({
      run: "run",
      home,
      blocks,
      roles: TABLE,
      artifacts: new ArtifactStore(`${home}/artifacts`),
      recorded: [],
      python: () => Promise.resolve(python),
    });
    groups.start(1);
    try {
      await work(groups, home);
    } finally {
      await groups.stop();
    }
  });
}

Deno.test({
  name: "a stage asks a real worker of the role; once it is killed, a new one is rebuilt",
  ignore: python === "",
  fn: () =>
    withTracker(async (groups, home) => {
      const store = new MemoryStore();
      const artifacts = new ArtifactStore(`${home}/artifacts`);
      const workers = groups.byRole.get(trackerRole)!;
      const engine = new Engine({
        store,
        artifacts,
        resources: [provide(workersOf(trackerRole), workers)],
      });
      await engine.create(followed, {}, { id: "run" });
      const outcome = await engine.execute("run", followed.build({}));
      if (outcome.status !== "done") throw new Error(JSON.stringify(outcome));
      const { before, after } = outcome.output as unknown as Record<string, Answer>;
      deepStrictEqual([before!.seen, after!.seen], [SEEN, SEEN]);
      notStrictEqual(after!.pid, before!.pid);
      const recoveries = store.rows("run").filter(({ kind }) => kind === "recovery");
      deepStrictEqual(recoveries.map(({ key, value }) => [key, JSON.parse(value!).action]), [[
        "follow~2",
        "restart",
      ]]);
    }),
});

Deno.test({
  name: "the worker checks the arguments of the role, the engine its answers",
  ignore: python === "",
  fn: () =>
    withTracker(async (groups) => {
      const workers = groups.byRole.get(trackerRole)!;
      const caller = { key: "k", attempt: 1, record: () => Promise.resolve() };
      await workers.ask("open", { map: "town" }, caller);
      await rejects(
        workers.ask("follow", { map: "town" } as never, caller),
        /Cannot read TrackerFollow because it is wrong: Object missing required field `frames`/,
      );
      const lying = { map: "town", frames: [{ x: 1, label: "lie" }] };
      await rejects(
        workers.ask("follow", lying, caller),
        /Cannot read the answer of rank 0 of the tracker to 'follow' because/,
      );
    }),
});
