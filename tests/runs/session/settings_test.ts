/** Runs that die and go on with other settings, of those that a resume may change. */
import { ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import {
  changeable,
  OnlineConfig,
  type SettingChange,
  settingChanges,
  withSettings,
} from "../../../configs/mod.ts";
import { Engine } from "../../../engine/mod.ts";
import { Crashed, fakeRun, type MemoryStore } from "../../../testing/mod.ts";
import { online } from "../../../flows/online.ts";
import { earlierConfigs, graphConfig } from "../../../runs/session/settings.ts";
import { leaves, otherValues } from "../../configs/each_setting.ts";
import { onlineConfig, rowsOf, scoredItem, stores } from "../../flows/fixtures.ts";
import type { Operator } from "../../../workers/mod.ts";

/** Values of settings whose schema suggests none. */
const MORE: Record<string, unknown[]> = {
  "checkpoints.keep_best": [{ metric: "reward/mean", mode: "max", count: 1 }],
  "reward.3.key_env": ["ONE_KEY", "OTHER_KEY"],
};

/** Values of each setting of stages that a resume may change, the first being the run's first. */
function valuesOf(config: OnlineConfig): Record<string, unknown[]> {
  const may = changeable(OnlineConfig).filter(({ read_by }) => read_by === "stages");
  const found = leaves(OnlineConfig, config).flatMap((leaf): [string, unknown[]][] => {
    const path = leaf.path.join(".");
    const general = `${path.replaceAll(/\b\d+\b/g, "*")}.`;
    if (!may.some((setting) => `${setting.path}.`.startsWith(general))) return [];
    return [[path, [leaf.value, ...MORE[path] ?? otherValues(leaf)]]];
  });
  return Object.fromEntries(found.filter(([, values]) => values.length > 1));
}

const REWARD = {
  name: "python",
  source: "/nowhere/reward.py:good",
  timeout_ms: 10_000,
  file_mib: null,
};

/** Scores a completion by its length. */
const POOL: Operator = {
  call: (_, args) => {
    const { items } = args as { items: { id: string; completion: string }[] };
    const results = items.map(({ id, completion }) => scoredItem({ id, score: completion.length }));
    return Promise.resolve({ outputs: [{ results }], blobs: [], generation: 1 });
  },
};

/** Scores a completion by its length, too, behind HTTP. */
const served = () =>
  Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const { query, prompts, messages } = await request.json() as {
      query: [string];
      prompts: [string];
      messages?: [{ content: string }];
    };
    if (messages === undefined) {
      return Response.json({ rewards: query[0].length - prompts[0].length });
    }
    const content = `[[${messages[0].content.length}]]`;
    return Response.json({ choices: [{ message: { content } }] });
  });

type Step = { crash: number | undefined; set: Record<string, number> };

const configOf = (model: string, overrides: Record<string, unknown>) =>
  onlineConfig(model, {
    data: { train: [{ path: "t" }], eval: [{ path: "e" }] },
    evaluate: { problems: 2 },
    ...overrides,
  });

/**
 * Executes a run engine by engine, each until it has appended so often, with the settings of its
 * step.
 */
async function resumed(steps: Step[], overrides: Record<string, unknown>) {
  const places = await stores();
  const config = configOf(places.model, overrides);
  const all = valuesOf(config);
  let store: MemoryStore = places.store;
  await new Engine({ store, artifacts: places.artifacts }).create(online, config, { id: "run" });
  const changes: SettingChange[] = [];
  let now = config;
  for (const { crash, set } of steps) {
    store = store.restarted({ crash_after_appends: crash });
    const next = Object.entries(set).reduce<OnlineConfig>((before, [path, place]) => {
      const values = all[path]!;
      return withSettings(before, [{ path, read_by: "stages", to: values[place % values.length] }]);
    }, now);
    for (const { read_by, ...change } of settingChanges(OnlineConfig, { from: now, to: next })) {
      strictEqual(read_by, "stages", change.path);
      changes.push({ ...change, read_by });
    }
    now = next;
    const graph = online.build(graphConfig(config, changes));
    const fake = await fakeRun({
      ...places,
      store,
      run: "run",
      rows: { train: rowsOf(16), eval: rowsOf(4) },
      pool: POOL,
    });
    const engine = new Engine({ store, artifacts: places.artifacts, resources: fake.resources });
    try {
      const outcome = await engine.execute("run", graph, {
        earlier: earlierConfigs(graph.config, changes),
      });
      strictEqual(outcome.status, "done", JSON.stringify(outcome));
      return {
        output: (outcome as unknown as { output: { policy: { version: string } } }).output,
        appends: store.appends,
      };
    } catch (error) {
      if (!(error instanceof Crashed)) throw error;
    }
  }
  throw new Error("the last engine must not crash");
}

for (const algorithm of ["grpo", "dapo"]) {
  Deno.test(`${algorithm}: whatever settings change at each of several resumes, a run ends as if none had`, async () => {
    await using server = served();
    const overrides = {
      algorithm: { name: algorithm },
      reward: [
        REWARD,
        { ...REWARD, label: "second", timeout_ms: 70_000 },
        { name: "remote", url: `http://127.0.0.1:${server.addr.port}` },
        {
          name: "judge",
          url: `http://127.0.0.1:${server.addr.port}`,
          model: "judge",
          template: "{completion}",
        },
      ],
    };
    const calm = await resumed([{ crash: undefined, set: {} }], overrides);
    ok(calm.appends > 20);
    const paths = Object.keys(valuesOf(configOf("m", overrides)));
    ok(paths.length > 15, paths.join());
    const set = fc.dictionary(fc.constantFrom(...paths), fc.nat(2), {
      noNullPrototype: true,
    });
    const steps = fc.array(fc.record({ crash: fc.integer({ min: 1, max: calm.appends }), set }), {
      minLength: 1,
      maxLength: 3,
    });
    await fc.assert(
      fc.asyncProperty(steps, set, async (crashing, last) => {
        const begin = { crash: calm.appends >> 1, set: {} };
        const { output } = await resumed(
          [begin, ...crashing, { crash: undefined, set: last }],
          overrides,
        );
        strictEqual(output.policy.version, calm.output.policy.version);
      }),
      { numRuns: 40 },
    );
  });
}
