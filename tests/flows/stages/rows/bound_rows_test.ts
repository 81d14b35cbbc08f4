import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { type ArtifactRef, type Row, type RowTable, tableOf } from "../../../../data/mod.ts";
import type { ErrorJson } from "../../../../engine/mod.ts";
import { runView } from "../../../../runs/mod.ts";
import { FLOW_GRAPHS } from "../../../../flows/table.ts";
import { FakeTrainer } from "../../../../testing/mod.ts";
import type { Operator } from "../../../../workers/mod.ts";
import { execute, onlineConfig, scoredItem, stores } from "../../fixtures.ts";

const { evaluate, online, preference, supervised } = FLOW_GRAPHS;

/** Rows whose prompts have so many characters: the fake model's tokens. */
function prompts(lengths: readonly number[]): RowTable {
  const rows = lengths.map((length, n): Row => ({
    row_id: `row-${n}`,
    prompt: n.toString(36).padStart(length, "x"), // One character, so that any length holds it.
    answer: "1",
    columns: {},
  }));
  return tableOf(rows, `prompts-${lengths.join()}`);
}

type Bounds = { prompt_tokens_max?: number | null; on_long_prompt?: string };

async function ran(
  lengths: readonly number[],
  bounds: Bounds,
  { tokens_max = null as number | null } = {},
) {
  const home = await stores();
  const config = onlineConfig(home.model, {
    data: { train: [{ path: "t" }], ...bounds },
    checkpoints: {},
  });
  const trainer = new FakeTrainer({ artifacts: home.artifacts, tokens_max });
  const ended = await execute(online, config, {
    ...home,
    trainer,
    rows: { train: prompts(lengths) },
  });
  const view = await runView(home.store, (await home.store.head("run"))!, {
    workers: [],
    metrics: {},
  });
  const slabs = ended.samplers.flatMap(({ calls }) => calls).filter(({ op }) => op === "generate");
  const draws = slabs.flatMap(({ args }) =>
    (args as { slab: { draws: { row: Row; prompt_tokens_max?: number }[] } }).slab.draws
  );
  return { ...ended, view, draws };
}

Deno.test("rows that are too long are named before anything is generated", async () => {
  const { outcome, draws, view } = await ran([4, 9, 4, 12], { prompt_tokens_max: 8 });
  strictEqual(outcome.status, "failed");
  deepStrictEqual(draws, []);
  const { message } = view.error as ErrorJson;
  match(
    message,
    /2 of 4 are too long: 'row-1' \(9\), 'row-3' \(12\). A prompt may have 8 tokens. Nothing was generated/,
  );
});

Deno.test("a row that the template refuses is named with file and line before anything is generated", async () => {
  const home = await stores();
  const trainer = new FakeTrainer({ artifacts: home.artifacts, refuses: "row-2" });
  const table = Object.assign(prompts([4, 4, 4]), {
    placeOf: (place: number) => Promise.resolve({ file: "t.jsonl", line: place + 1 }),
  });
  const config = onlineConfig(home.model, { data: { train: [{ path: "t" }] }, checkpoints: {} });
  const { samplers } = await execute(online, config, { ...home, trainer, rows: { train: table } });
  const view = await runView(home.store, (await home.store.head("run"))!, {
    workers: [],
    metrics: {},
  });
  const generated = samplers.flatMap(({ calls }) => calls).filter(({ op }) => op === "generate");
  deepStrictEqual(generated, []);
  match(
    (view.error as ErrorJson).message,
    /: Cannot use row 'row-2' \(t\.jsonl:3\): message 2 tool_calls: nothing is written of it$/,
  );
});

Deno.test("the tools of a row are measured with it", async () => {
  const home = await stores();
  const trainer = new FakeTrainer({ artifacts: home.artifacts });
  const tools = '[{"type":"function"}]';
  const prompt = [{ role: "user", content: "a" }];
  const train = tableOf([{ row_id: "r", prompt, tools, answer: "1", columns: {} }], "tools");
  const config = onlineConfig(home.model, { data: { train: [{ path: "t" }] }, checkpoints: {} });
  await execute(online, config, { ...home, trainer, rows: { train } });
  const { args } = trainer.calls.find(({ op }) => op === "measure_rows")!;
  const { rows } = args as { rows: ArtifactRef };
  deepStrictEqual(await home.artifacts.getJson(rows), [{ row_id: "r", prompt, tools }]);
});

/** Starts one run again and again, each time with these rows of both splits. */
async function resumed(
  ...tries: { train: readonly number[]; eval: readonly number[]; broken?: boolean }[]
) {
  const home = await stores();
  const data = { train: [{ path: "t" }], eval: [{ path: "e" }], prompt_tokens_max: 8 };
  const reward = [{ name: "python", source: "/nowhere/reward.py:good" }];
  const rollouts = { failed_fraction_max: 0 };
  const config = onlineConfig(home.model, {
    data,
    reward,
    rollouts,
    evaluate: { problems: 1 },
    rounds: 4,
  });
  const ends: string[] = [];
  for (const { broken = false, ...lengths } of tries) {
    const rows = { train: prompts(lengths.train), eval: prompts(lengths.eval) };
    const { outcome } = await execute(online, config, { ...home, rows, pool: scoring(broken) });
    ends.push(outcome.status === "failed" ? outcome.error.message : outcome.status);
  }
  return ends;
}

function scoring(broken: boolean): Operator {
  const score = ({ id }: { id: string }, n: number) =>
    broken ? scoredItem({ id, outcome: "error", error: "broken" }) : scoredItem({ id, score: n });
  const results = (args: unknown) => (args as { items: { id: string }[] }).items.map(score);
  return {
    call: (_, args) =>
      Promise.resolve({ outputs: [{ results: results(args) }], blobs: [], generation: 1 }),
  };
}

Deno.test("a resume bounds repaired rows again, once for all stages", async () => {
  const good = { train: [4, 5, 6], eval: [3] };
  for (const split of ["train", "eval"] as const) {
    const long = { ...good, [split]: [4, 9, 4] };
    const [first, second, third] = await resumed(long, { ...good, [split]: [4, 12] }, good);
    match(first!, /'row-1' \(9\).*shorten or remove them, then resume/);
    match(second!, /'row-1' \(12\)/);
    strictEqual(third, "done", "evaluations before and after have the same rows");
  }
});

Deno.test("a resume refuses changed rows that were drawn from, or not refused", async () => {
  const good = { train: [4, 5, 6], eval: [3] };
  const [first, second] = await resumed({ ...good, broken: true }, { ...good, train: [4, 5] });
  match(first!, /broken/);
  match(second!, /'train' rows because their files have changed since the run started/);
  const other = { train: [4, 5], eval: [3] };
  const [long, ...later] = await resumed({ ...good, eval: [9] }, other, other);
  match(long!, /'row-0' \(9\)/);
  for (const message of later) {
    match(message, /'train' rows because their files have changed since the run started/);
  }
});

Deno.test("without a bound of its own a prompt leaves the model room for one token", async () => {
  for (const [tokens_max, status] of [[10, "done"], [9, "failed"]] as const) {
    strictEqual((await ran([9, 9], {}, { tokens_max })).outcome.status, status);
  }
});

Deno.test("drop keeps the rows within the bound, and counts the others", async () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(lengths, fc.integer({ min: 1, max: 20 }), async (lengths, most) => {
      const { outcome, draws, view } = await ran(lengths, {
        prompt_tokens_max: most,
        on_long_prompt: "drop",
      });
      const kept = lengths.flatMap((length, n) => (length <= most ? [`row-${n}`] : []));
      if (kept.length === 0) {
        strictEqual(outcome.status, "failed");
        return match((view.error as ErrorJson).message, /all \d+ of them are too long/);
      }
      strictEqual(outcome.status, "done");
      const drawn = draws.map(({ row }) => row.row_id);
      ok(drawn.every((id) => kept.includes(id)));
      if (kept.length <= drawn.length) {
        deepStrictEqual(new Set(drawn.slice(0, kept.length)), new Set(kept));
      }
      deepStrictEqual(view.rows, [{
        split: "train",
        rows: lengths.length,
        longest_prompt_tokens: Math.max(...lengths),
        dropped: lengths.length - kept.length,
        truncated: 0,
      }]);
    }),
    { numRuns: 25 },
  );
});

Deno.test("truncate_left: every row is drawn, and says what its prompt is cut to", async () => {
  const { outcome, draws, view } = await ran([4, 9, 12], {
    prompt_tokens_max: 8,
    on_long_prompt: "truncate_left",
  });
  strictEqual(outcome.status, "done");
  deepStrictEqual(new Set(draws.map(({ prompt_tokens_max }) => prompt_tokens_max)), new Set([8]));
  deepStrictEqual(view.rows.map(({ truncated, dropped }) => [truncated, dropped]), [[2, 0]]);
});

Deno.test("rows of every flow are bounded, held-out ones too", () => {
  const model = { path: "m" };
  const data = { train: [{ path: "t" }], eval: [{ path: "e" }] };
  const reward = [{ name: "exact_match" as const }];
  const graphs = [
    online.build({ ...onlineConfig("m"), data, evaluate: {} } as never),
    supervised.build({
      flow: "supervised",
      rounds: 1,
      rows_per_round: 1,
      model,
      data,
      reward,
      evaluate: {},
    }),
    evaluate.build({ flow: "evaluate", model, data: { eval: data.eval }, reward }),
    preference.build({
      flow: "preference",
      rounds: 1,
      pairs_per_round: 1,
      model,
      data,
      evaluate: {},
    }),
  ];
  for (const graph of graphs) {
    const [opened, bounded] = ["open_data", "bound_rows"].map((stage) =>
      graph.lines.filter((line) => line.includes(stage)).length
    );
    ok(opened! > 0 && bounded! >= opened!, graph.lines.join("\n"));
  }
});
