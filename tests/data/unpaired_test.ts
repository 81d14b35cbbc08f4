import { deepStrictEqual, match, rejects, strictEqual, throws } from "node:assert/strict";
import {
  DataError,
  labelledCompletions,
  loadRows,
  mismatchedOf,
  normalise,
  SourceConfig,
} from "../../data/mod.ts";
import { rowHome } from "./row_home.ts";

const rowOf = (columns: Record<string, unknown>, fields: Record<string, string> = {}) =>
  normalise(columns, SourceConfig.parse({ path: "unused", fields }), { unpaired: true });
const completions = (columns: Record<string, unknown>, fields?: Record<string, string>) =>
  labelledCompletions(rowOf(columns, fields));

Deno.test("an unpaired preference is one completion with its label", () => {
  const row = { id: 4, prompt: "2+2?", completion: "4" };
  for (const [label, is] of [[true, true], [1, true], [false, false], [0, false]] as const) {
    deepStrictEqual(completions({ ...row, label }), [
      { row_id: "4", prompt: "2+2?", completion: "4", label: is },
    ]);
  }
});

Deno.test("a preference is a desirable and an undesirable completion, whatever else it has", () => {
  const row = { id: 4, prompt: "2+2?", chosen: "4", rejected: "5" };
  const one = { row_id: "4", prompt: "2+2?" };
  const both = [{ ...one, completion: "4", label: true }, {
    ...one,
    completion: "5",
    label: false,
  }];
  deepStrictEqual(completions(row), both);
  deepStrictEqual(completions({ ...row, completion: "6", label: false }), both);
  const { chosen, rejected, ...rest } = row;
  const named = { ...rest, good: chosen, bad: rejected };
  deepStrictEqual(completions(named, { chosen: "good", rejected: "bad" }), both);
});

Deno.test("a row that lacks a side, or has null there, is read by its label", () => {
  const row = { id: 4, prompt: "2+2?", completion: "5", label: false };
  const one = [{ row_id: "4", prompt: "2+2?", completion: "5", label: false }];
  deepStrictEqual(completions({ ...row, chosen: null, rejected: null }), one);
  deepStrictEqual(completions(row, { chosen: "good", rejected: "bad" }), one);
  const nulls = { ...row, good: null, bad: null };
  deepStrictEqual(completions(nulls, { chosen: "good", rejected: "bad" }), one);
});

Deno.test("labels may be texts, as CSV has them", () => {
  const labels = ["true", "True", "1", " false", "FALSE", "0"].map((label) =>
    completions({ id: 1, prompt: "p", completion: "c", label })[0]!.label
  );
  deepStrictEqual(labels, [true, true, true, false, false, false]);
});

Deno.test("messages are a prompt and the last turn, and labels have the name that is configured", () => {
  const messages = [{ role: "user", content: "q" }, { role: "assistant", content: "a" }];
  deepStrictEqual(completions({ id: 1, messages, rating: { up: 1 } }, { label: "rating.up" }), [
    { row_id: "1", prompt: [messages[0]], completion: "a", label: true },
  ]);
});

const lines = (...rows: unknown[]) => rows.map((row) => JSON.stringify(row)).join("\n") + "\n";
const GOOD = { prompt: "a", completion: "b", label: true };
const BROKEN: { name: string; row: unknown; says: RegExp }[] = [
  {
    name: "neither a label nor a pair",
    row: { prompt: "a", completion: "c" },
    says:
      /:2 label: the row has no 'label' \(it has 'prompt', 'completion'\); .* 'chosen' and 'rejected'; .*`fields: \{ label: NAME/,
  },
  {
    name: "a label that is null",
    row: { prompt: "a", completion: "c", label: null },
    says: /:2 label: the row has no 'label'/,
  },
  {
    name: "a label that is a text",
    row: { ...GOOD, completion: "c", label: "good" },
    says: /:2 label: expected true or false, or 1 or 0, got the text "good"/,
  },
  {
    name: "a label that is a score",
    row: { ...GOOD, completion: "c", label: 0.5 },
    says: /:2 label: expected true or false, or 1 or 0, got number 0\.5/,
  },
  {
    name: "no completion",
    row: { prompt: "a", label: true },
    says: /:2 completion: expected text, got nothing; add it/,
  },
  {
    name: "half a pair",
    row: { prompt: "a", chosen: "c" },
    says: /:2 label: the row has no 'label' \(it has 'prompt', 'chosen'\)/,
  },
  {
    name: "a whole text",
    row: { text: "abc", label: true },
    says: /:2 prompt: the prompt is empty/,
  },
];
for (const { name, row, says } of BROKEN) {
  Deno.test(`loadRows() of labelled completions refuses ${name}, with file, line, field and fix`, async () => {
    const path = await Deno.makeTempFile({ suffix: ".jsonl" });
    await Deno.writeTextFile(path, lines(GOOD, row));
    await rejects(
      loadRows([{ path }], { home: await rowHome(), needs: "unpaired" }),
      (error: DataError) => {
        match(error.message, says);
        return error instanceof DataError;
      },
    );
  });
}

Deno.test("loadRows() reads pairs and labelled completions of one file", async () => {
  const path = await Deno.makeTempFile({ suffix: ".jsonl" });
  await Deno.writeTextFile(path, lines(GOOD, { prompt: "a", chosen: "c", rejected: "d" }));
  const table = await loadRows([{ path }], { home: await rowHome(), needs: "unpaired" });
  const rows = await table.rows([0, 1]);
  deepStrictEqual(rows.map(({ label, rejected }) => [label, rejected]), [
    [true, undefined],
    [undefined, "d"],
  ]);
});

Deno.test("labelledCompletions() refuses a row that was read as something else", () => {
  const row = normalise({ prompt: "a", completion: "b" }, SourceConfig.parse({ path: "x" }));
  throws(() => labelledCompletions(row), /was read without a label/);
});

const prompts = (text: string) => [...text].map((prompt) => ({ prompt }));

Deno.test("mismatchedOf() rotates completions until none meets its own prompt", () => {
  deepStrictEqual(mismatchedOf(prompts("abc")), [1, 2, 0]);
  // Both sides of two pairs: a rotation by one would put a rejected side behind its own prompt.
  deepStrictEqual(mismatchedOf(prompts("aabb")), [2, 3, 0, 1]);
  deepStrictEqual(mismatchedOf([{ prompt: [{ role: "user", content: "a" }] }, { prompt: "a" }]), [
    1,
    0,
  ]);
});

Deno.test("mismatchedOf() leaves as few as possible where one prompt has most completions", () => {
  const places = mismatchedOf(prompts("aaab"));
  deepStrictEqual(places.toSorted(), [0, 1, 2, 3]);
  const matches = places.filter((place, i) => "aaab"[place] === "aaab"[i]);
  strictEqual(matches.length, 2, "of four, three of one prompt");
  deepStrictEqual(mismatchedOf(prompts("aaa")), [1, 2, 0]);
  deepStrictEqual(mismatchedOf(prompts("a")), [0]);
  deepStrictEqual(mismatchedOf([]), []);
});
