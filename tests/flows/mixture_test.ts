import { deepStrictEqual, match, ok, strictEqual, throws } from "node:assert/strict";
import { OnlineConfig, SupervisedConfig } from "../../configs/mod.ts";
import { type ArtifactRef, type Batch, type RowTable, type Slab, tableOf } from "../../data/mod.ts";
import { graph, type GraphBuilder, type GraphDefinition } from "../../engine/mod.ts";
import { runView } from "../../runs/mod.ts";
import { Crashed, FakeSampler, type MemoryStore } from "../../testing/mod.ts";
import { NO_DRAWS, preparePolicy, refilledRollouts, scoredRollouts } from "../../flows/mod.ts";
import { online } from "../../flows/online.ts";
import { openRows } from "../../flows/open_rows.ts";
import { preference } from "../../flows/preference.ts";
import { supervised } from "../../flows/supervised.ts";
import { type Death, killPoints, onceDurable, watched } from "./crashes/deaths.ts";
import { execute, onlineConfig, stores } from "./fixtures.ts";
import { preferenceConfig } from "./preference_fixtures.ts";

const SIZES = { easy: 3, hard: 40 };

/** Rows of two sources that fit every flow. */
function mixedRows(): RowTable {
  const rows = Object.entries(SIZES).flatMap(([name, size]) =>
    Array.from({ length: size }, (_, n) => ({
      row_id: `${name}/${n}`,
      prompt: `${name} ${n}`,
      completion: "good",
      rejected: "bad",
      columns: {},
    }))
  );
  return tableOf(rows, "mixed", Object.values(SIZES));
}

const data = (easy: unknown, hard: unknown, more: object = {}) => ({
  train: [{ path: "easy.jsonl", weight: easy }, { path: "hard.jsonl", weight: hard }],
  ...more,
});
/** Easy prompts get equal completions, hard ones different ones. */
const sampler = () =>
  new FakeSampler({
    complete: ({ draw, sample }) => "1".repeat(1 + (sample * draw) % 7),
    stop: () => "stop",
  });

type Drawing = Parameters<typeof scoredRollouts>[2];
type MixedRun<C> = { flow: GraphDefinition<C, unknown, unknown>; config: (model: string) => C };

/** What a run drew, killed at these moments and resumed. */
async function ran<C>({ flow, config }: MixedRun<C>, deaths: Death[] = []) {
  const { store: first, artifacts, dir, model } = await stores();
  const moments = new Set<string>();
  let store = first;
  try {
    for (const death of [...deaths, watched(moments)]) {
      store = store.restarted(death);
      const places = { store, artifacts, dir, rows: { train: mixedRows() }, samplers: [sampler()] };
      try {
        const { outcome } = await execute(flow, config(model), places);
        strictEqual(outcome.status, "done", JSON.stringify(outcome));
        break;
      } catch (error) {
        if (!(error instanceof Crashed)) throw error;
      }
    }
    const view = await runView(store, (await store.head("run"))!, { workers: [], metrics: {} });
    const drawn = await rowsDrawn(store, (ref) => artifacts.getJson(ref));
    return { drawn, carried: carriedBy(store), view, store, moments: [...moments] };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** The rows of every draw, by the key of the stage that drew them. */
async function rowsDrawn(store: MemoryStore, read: (ref: ArtifactRef) => Promise<unknown>) {
  const results = store.rows("run").filter(({ kind, key }) =>
    kind === "result" && /\/draw_(prompts|rows|pairs)$/.test(key)
  );
  const drawn = await Promise.all(results.map(async ({ key, value }) => {
    const { output } = JSON.parse(value) as { output: Slab[] | ArtifactRef };
    if (Array.isArray(output)) {
      return [key, output.flatMap(({ draws }) => draws.map(({ row }) => row.row_id))] as const;
    }
    const batch = await read(output) as Extract<Batch, { kind: "preference" | "supervised" }>;
    const rows = batch.kind === "preference" ? batch.pairs : batch.rows;
    return [key, rows.map(({ row_id }) => row_id)] as const;
  }));
  return Object.fromEntries(drawn);
}

function carriedBy(store: MemoryStore): unknown[] {
  return store.rows("run").filter(({ kind }) => kind === "round")
    .map(({ value }) => {
      const { carried: { drawn, recent } } = JSON.parse(value);
      return { drawn, recent };
    });
}

const ONLINE = { rounds: 6, prompts_per_round: 8 };
const asOnline = (overrides: object): MixedRun<ReturnType<typeof onlineConfig>> => ({
  flow: online as never,
  config: (model) => onlineConfig(model, { ...ONLINE, ...overrides }),
});
const asSupervised: MixedRun<SupervisedConfig> = {
  flow: supervised as never,
  config: (model) =>
    SupervisedConfig.parse({
      flow: "supervised",
      seed: 3,
      rounds: ONLINE.rounds,
      rows_per_round: ONLINE.prompts_per_round,
      model: { path: model },
      data: data(1, 3),
      trainer: { optimizer: { lr: 0.1 } },
    }),
};
const asPreference: MixedRun<ReturnType<typeof preferenceConfig>> = {
  flow: preference as never,
  config: (model) =>
    preferenceConfig(model, {
      rounds: ONLINE.rounds,
      pairs_per_round: ONLINE.prompts_per_round,
      data: data(1, 3),
      evaluate: null,
    }),
};

Deno.test("a mixture draws the same rows in every flow, each source in its own order", async () => {
  const runs = [
    await ran(asOnline({ data: data(1, 3) })),
    await ran(asSupervised),
    await ran(asPreference),
  ];
  const [first, ...others] = runs.map(({ drawn }) => Object.values(drawn));
  for (const other of others) deepStrictEqual(other, first);
  const easy = first!.flat().filter((id) => id.startsWith("easy/"));
  for (let epoch = 0; 3 * epoch + 3 <= easy.length; epoch++) {
    deepStrictEqual(easy.slice(3 * epoch, 3 * epoch + 3).toSorted(), [
      "easy/0",
      "easy/1",
      "easy/2",
    ]);
  }
  const [{ view, carried, store }] = runs as [typeof runs[0]];
  const drawn = [easy.length, 48 - easy.length];
  deepStrictEqual(carried.at(-1), { drawn, recent: undefined });
  deepStrictEqual(view.mixture, [
    { name: "easy", rows: 3, drawn: drawn[0], repeated: drawn[0]! - 3, share: 0.25 },
    { name: "hard", rows: 40, drawn: drawn[1], repeated: 0, share: 0.75 },
  ]);
  strictEqual(view.ledger.read, 48);
  const notes = store.rows("run").filter(({ kind }) => kind === "note/mixture");
  strictEqual(notes.length, ONLINE.rounds);
});

Deno.test("weights by round move the draws from one source to the other", async () => {
  const { drawn } = await ran(asOnline({ data: data([[1, 1], [6, 0]], [[1, 0], [6, 1]]) }));
  const rounds = Object.values(drawn).map((ids) => ids.filter((id) => id.startsWith("easy/")));
  deepStrictEqual([rounds[0]!.length, rounds.at(-1)!.length], [8, 0]);
  ok(rounds[2]!.length > 0 && rounds[2]!.length < 8);
});

Deno.test("a graph without weights is the same as before mixtures", async () => {
  const { drawn, view, store } = await ran(asOnline({}));
  deepStrictEqual(view.mixture, []);
  strictEqual(Object.keys(drawn).length, ONLINE.rounds);
  ok(!store.rows("run").some(({ key }) => key.includes("mix")));
  const config = onlineConfig("m");
  const drawing = online.build(config).draw();
  ok(!drawing.includes("mix_sources"));
  match(online.build(onlineConfig("m", { data: data(1, 1) })).draw(), /mix_sources/);
});

Deno.test("a custom graph that does not mix its sources refuses weights", () => {
  const config = onlineConfig("m", { data: data(1, 1) });
  const unmixed = (body: (g: GraphBuilder, from: Drawing) => unknown) =>
    graph("unmixed", OnlineConfig, (g, config) => {
      const model_path = config.model.path;
      const policy = g.stage(preparePolicy, { model_path, optimizer: config.trainer.optimizer });
      const opened = openRows(g, config, { split: "train", use: "prompt", model_path });
      return body(g, { data: opened, round: g.constant(1), policy });
    }).build(config);
  const draws = { draws: NO_DRAWS as never, refill: { batches_max: 1 } as never };
  for (
    const [body, what] of [
      [(g: GraphBuilder, from: Drawing) => scoredRollouts(g, config, from), "mixed: mixedRound"],
      [
        (g: GraphBuilder, from: Drawing) => refilledRollouts(g, config, { ...from, ...draws }),
        "mix: ",
      ],
    ] as const
  ) {
    throws(() => unmixed(body), new RegExp(`data.train has weights.*pass \`${what}`));
  }
});

const CURRICULUM = { data: data(1, 1, { curriculum: { memory: 0.5 } }) };
const DAPO = {
  ...CURRICULUM,
  algorithm: { name: "dapo", refill_batches_max: 3, surplus: "rescore" },
};

for (const [name, overrides] of Object.entries({ grpo: CURRICULUM, dapo: DAPO })) {
  Deno.test(`a ${name} curriculum killed at 10 points draws the same rows`, async () => {
    const run = asOnline({ ...overrides, rounds: 4 });
    const calm = await ran(run);
    const shares = calm.view.mixture.map(({ share }) => share);
    ok(shares[0] !== shares[1], "rewards steered nothing: the test proves too little");
    const what = ({ drawn, carried, view }: typeof calm) => ({
      drawn,
      carried,
      mixture: view.mixture,
      ledger: view.ledger,
      policy: view.policy,
    });
    const points = killPoints(calm.moments, { seed: 11, count: 10 }).slice(-10);
    for (const moment of points) {
      const killed = await ran(run, [onceDurable(moment)]);
      deepStrictEqual([moment, what(killed)], [moment, what(calm)]);
    }
  });
}

Deno.test("a curriculum with lag steers by the rewards that are there", async () => {
  const { carried } = await ran(asOnline({ ...CURRICULUM, lag: 1 }));
  strictEqual(carried.length, ONLINE.rounds);
});
