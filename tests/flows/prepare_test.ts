import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { loadRows } from "../../data/mod.ts";
import { DROP_REASONS } from "../../flows/files/prepared_part.ts";
import { killPoints, onceDurable } from "./crashes/deaths.ts";
import { Preparing } from "./stages/preparation/preparing.ts";

/** Of the kill points: a gate that is red today is red tomorrow. */
const SEED = 5;

const words = (n: number) => Array.from({ length: 16 }, (_, i) => `w${n}x${i}`).join(" ");
const problem = (n: number, more: object = {}) => ({
  question: `${n}: ${words(n)}`,
  answer: `work ${n}\n#### ${n}`,
  ...more,
});
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

/** Three files with something of every reason. */
const FILES = {
  "in/a.jsonl": numbers(0, 40).map((n) => problem(n)),
  "in/b.jsonl": [
    ...numbers(30, 60).map((n) => problem(n)),
    problem(60, { answer: "long ".repeat(200) + "\n#### 60" }),
    { question: "short", answer: "#### 1" },
    { question: words(1), unanswered: true },
    problem(61, { question: `solve this: ${words(901)}, please` }),
  ],
  "boxed.jsonl": [
    { problem: words(100), solution: "so \\boxed{\\frac{1}{2}}" },
    { problem: words(101), solution: "it is 3" },
  ],
  "eval.jsonl": [{ question: words(900) }, { question: words(901) }],
};
const CONFIG = {
  inputs: [
    { path: "DIR/in", prompt_as: "chat" },
    {
      path: "DIR/boxed.jsonl",
      prompt_as: "chat",
      fields: { prompt: "problem", answer: "solution" },
      answer_as: "boxed",
      split: "test",
    },
  ],
  needs: "answer",
  on_bad_row: "drop",
  lengths: { prompt_characters_min: 10, sequence_tokens_max: 900 },
  tokenizer: { path: "DIR/tokenizer" },
  decontaminate: { sets: [{ path: "DIR/eval.jsonl", name: "held" }] },
  splits: { train: 3, eval: 1 },
};

const calm = await Preparing.of(FILES, CONFIG);
const prepared = await calm.done();
const digests = await calm.digests();

Deno.test("prepare writes splits as Parquet, and a card that counts drops by reason", async () => {
  deepStrictEqual(Object.keys(digests), [
    "README.md",
    "card.json",
    "eval.parquet",
    "owner.json",
    "test.parquet",
    "train.parquet",
  ]);
  const { rows, inputs, evaluation_sets, splits } = await calm.card();
  deepStrictEqual(rows, {
    read: 76,
    written: 61,
    dropped: {
      contaminated: 1,
      duplicate: 10,
      mapped_to_nothing: 1,
      too_long: 1,
      too_short: 1,
      unreadable: 1,
    },
  });
  deepStrictEqual(inputs.map(({ file, read, written }) => [file, read, written]), [
    ["a.jsonl", 40, 40],
    ["b.jsonl", 34, 20],
    ["boxed.jsonl", 2, 1],
  ]);
  deepStrictEqual(
    evaluation_sets.map(({ name, problems, rows_dropped }) => [
      name,
      problems,
      rows_dropped,
    ]),
    [["held", 2, 1]],
  );
  strictEqual(splits.reduce((sum, split) => sum + split.rows, 0), 61);
  deepStrictEqual(prepared.rows, rows);
});

Deno.test("prepare names where rows were dropped, and why", async () => {
  const { dropped_rows } = await calm.card();
  const first = DROP_REASONS.map((reason) => dropped_rows.find((row) => row.reason === reason)!);
  deepStrictEqual(first.map(({ file, row, reason }) => `${file}:${row} ${reason}`), [
    "b.jsonl:33 unreadable",
    "boxed.jsonl:2 mapped_to_nothing",
    "b.jsonl:1 duplicate",
    "b.jsonl:32 too_short",
    "b.jsonl:31 too_long",
    "b.jsonl:34 contaminated",
  ]);
  strictEqual(
    first.at(-1)!.because,
    `held contains "${words(901).split(" ").slice(0, 13).join(" ")}"`,
  );
});

Deno.test("a source reads what prepare wrote, with the ids that the rows had", async () => {
  const raw = await loadRows([{ path: `${calm.dir}/in/a.jsonl`, prompt_as: "chat" }], {
    home: calm.dir,
    needs: "answer",
  });
  const written = await loadRows([{ path: calm.out }], { home: calm.dir, needs: "answer" });
  strictEqual(written.size, 61);
  const all = async (table: typeof raw) =>
    (await table.rows(Array.from({ length: table.size }, (_, i) => i)))
      .map(({ columns: _, ...row }) => row);
  const byId = new Map((await all(written)).map((row) => [row.row_id, row]));
  for (const row of await all(raw)) deepStrictEqual(byId.get(row.row_id), row);
});

Deno.test("prepare writes the same bytes however many files are read at once", async () => {
  for (const slots of [1, 2, 7]) {
    const other = await Preparing.of(FILES, CONFIG);
    await other.done({ slots });
    deepStrictEqual(await other.digests(), digests, `${slots} at once`);
  }
});

/**
 * Every row that a run records before its last, in an order that the seed decides: the same rows
 * are recorded in every run.
 */
const points = killPoints([...calm.moments].filter((name) => name !== "note/output run"), {
  seed: SEED,
  count: Infinity,
});

Deno.test("prepare killed after any recorded row and resumed writes the same bytes", async () => {
  ok(points.length > 30, `${points.length} rows are recorded`);
  for (const moment of points) {
    const other = await Preparing.of(FILES, CONFIG);
    await other.done({ deaths: [onceDurable(moment)] });
    deepStrictEqual(await other.digests(), digests, `killed after ${moment}`);
    strictEqual(other.deaths, 1, `no engine was killed after ${moment}`);
  }
});

Deno.test("engines that each die at their second write end with the same bytes", async () => {
  const other = await Preparing.of(FILES, CONFIG);
  await other.done({ deaths: Array.from({ length: 60 }, () => ({ crash_after_appends: 2 })) });
  // A run has at least six writes, one after the other.
  ok(other.deaths >= 3, `${other.deaths} deaths`);
  deepStrictEqual(await other.digests(), digests);
});

Deno.test("of every file: read = written + dropped, whatever the rows are", async () => {
  const row = fc.record({
    question: fc.oneof(fc.constantFrom("a b", "a  b", "c d e"), fc.string({ maxLength: 12 })),
    answer: fc.constantFrom("#### 1", "\\boxed{2}", "", null),
  });
  const line = fc.oneof(
    { weight: 5, arbitrary: row.map((one) => JSON.stringify(one)) },
    { weight: 1, arbitrary: fc.constantFrom("", "{", "[1]", "7") },
  );
  const files = fc.array(fc.array(line, { maxLength: 12 }), { minLength: 1, maxLength: 3 });
  const settings = fc.record({
    deduplicate: fc.constantFrom("prompt", "row"),
    needs: fc.constantFrom("prompt", "answer"),
    lengths: fc.record({
      prompt_characters_min: fc.constantFrom(null, 2),
      sequence_characters_max: fc.constantFrom(null, 8),
    }),
  });
  await fc.assert(
    fc.asyncProperty(files, settings, async (all, settings) => {
      const named = Object.fromEntries(all.map((lines, i) => [`in/${i}.jsonl`, lines.join("\n")]));
      const sets = [{ path: "DIR/held.jsonl" }];
      const preparing = await Preparing.of({ ...named, "held.jsonl": '{"question":"c d e"}\n' }, {
        inputs: [{ path: "DIR/in", answer_as: settings.needs === "answer" ? "boxed" : "as_is" }],
        on_bad_row: "drop",
        decontaminate: { sets, ngram_words: 2 },
        ...settings,
      });
      const outcome = await preparing.run();
      if (outcome.status === "failed") {
        ok(/no row is left/.test(outcome.error.message), outcome.error.message);
        return;
      }
      const { rows, inputs, splits } = await preparing.card();
      const total = (counts: Record<string, number>) =>
        Object.values(counts).reduce((sum, count) => sum + count, 0);
      for (const one of [rows, ...inputs]) strictEqual(one.read, one.written + total(one.dropped));
      const lines = all.flat().filter((text) => text !== "");
      strictEqual(rows.read, lines.length);
      strictEqual(rows.written, splits.reduce((sum, split) => sum + split.rows, 0));
    }),
    { numRuns: 40, seed: SEED },
  );
});

const conversation = (...contents: string[]) =>
  contents.map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content }));

/** A row of each way in which a prompt and what follows it are texts or messages. */
const SHAPES: Record<string, Record<string, unknown>> = {
  text: { prompt: "t", completion: "so" },
  question: { prompt: "q" },
  messages: { messages: conversation("m", "so") },
  asked: { prompt: conversation("a") },
  answered: { prompt: conversation("b"), completion: "so" },
};

Deno.test("texts and messages in one preparation are written as messages, in any order", async () => {
  const shapes = fc.uniqueArray(fc.constantFrom(...Object.keys(SHAPES)), { minLength: 2 });
  await fc.assert(
    fc.asyncProperty(shapes, fc.boolean(), async (names, one_file) => {
      const rows = names.map((name) => ({ id: name, ...SHAPES[name] }));
      const files = one_file
        ? { "in/all.jsonl": rows }
        : Object.fromEntries(rows.map((row, i) => [`in/${i}.jsonl`, [row]]));
      const mixed = await Preparing.of(files, {
        inputs: [{ path: "DIR/in" }],
        needs: "prompt",
        splits: { train: 1 },
      });
      await mixed.done();
      const { splits: [split] } = await mixed.card();
      const table = await loadRows([{ path: mixed.out }], { home: mixed.dir });
      const written = await table.rows([...rows.keys()]);
      const texts = names.filter((name) => typeof SHAPES[name]!.prompt === "string");
      const is_mixed = texts.length < names.length;
      for (const { row_id, prompt, completion } of written) {
        const { messages, prompt: question, completion: taught } = SHAPES[row_id]! as {
          messages?: ReturnType<typeof conversation>;
          prompt: string | ReturnType<typeof conversation>;
          completion?: string;
        };
        const first = messages?.slice(0, 1) ?? question;
        const expected = is_mixed && typeof first === "string" ? conversation(first) : first;
        deepStrictEqual(prompt, expected, row_id);
        // A source reads one message of the assistant as its text.
        strictEqual(completion, messages ? "so" : taught, row_id);
      }
      strictEqual(
        split!.texts_as_messages,
        is_mixed && texts.length > 0 ? texts.length : undefined,
      );
      const page = await Deno.readTextFile(`${mixed.out}/README.md`);
      strictEqual(page.includes("written as messages"), split!.texts_as_messages !== undefined);
    }),
    { numRuns: 12 },
  );
});

Deno.test("both sides of a preference of texts are messages if another one has messages", async () => {
  const pair = (id: string, more: object) => ({ id, ...more });
  const mixed = await Preparing.of({
    "in/a.jsonl": [pair("text", { prompt: "p", chosen: "yes", rejected: "no" })],
    "in/b.jsonl": [pair("messages", {
      prompt: conversation("q"),
      chosen: [{ role: "assistant", content: "yes" }],
      rejected: [{ role: "assistant", content: "no" }],
    })],
  }, { inputs: [{ path: "DIR/in" }], needs: "preference", splits: { train: 1 } });
  await mixed.done();
  const table = await loadRows([{ path: mixed.out }], { home: mixed.dir, needs: "preference" });
  for (const row of await table.rows([0, 1])) {
    deepStrictEqual(row.prompt, conversation(row.row_id === "text" ? "p" : "q"));
    deepStrictEqual([row.completion, row.rejected], ["yes", "no"]);
  }
});

Deno.test("lengths in tokens are of what is written", async () => {
  const text = { id: "text", prompt: "p".repeat(20) };
  for (
    const [others, dropped] of [[[], {}], [[{ prompt: conversation("q") }], {
      too_long: 1,
    }]] as const
  ) {
    const mixed = await Preparing.of({ "in/a.jsonl": [text, ...others] }, {
      inputs: [{ path: "DIR/in" }],
      needs: "prompt",
      tokenizer: { path: "DIR/tokenizer" },
      lengths: { prompt_tokens_max: 40 }, // The fake one's tokens are characters of JSON.
      splits: { train: 1 },
    });
    await mixed.done();
    deepStrictEqual((await mixed.card()).rows.dropped, dropped);
  }
});
