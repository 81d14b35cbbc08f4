import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { normalise, ROW_SHAPES, shapeOf, SourceConfig } from "../../../data/mod.ts";
import { shapeFields } from "../../../data/rows/row_shapes.ts";

const chat = [{ role: "user", content: "2+2?" }];
const reply = [{ role: "assistant", content: "4" }];
const source = SourceConfig.parse({ path: "rows.jsonl" });

/** A row of each shape as its framework documents it, with what is read of it. */
const ROWS: { shape: string; row: Record<string, unknown>; read?: Record<string, unknown> }[] = [
  { shape: "preference", row: { prompt: chat, chosen: reply, rejected: "5" } },
  { shape: "preference_implicit_prompt", row: { chosen: "2+2? 4", rejected: "2+2? 5" } },
  {
    shape: "nemo_gym",
    row: {
      responses_create_params: {
        instructions: "Add.",
        input: [{ role: "user", content: [{ type: "input_text", text: "2+2?" }] }],
        tools: [],
      },
      agent_ref: { name: "math" },
      question: "2+2?",
      expected_answer: "4",
    },
    read: { prompt: [{ role: "system", content: "Add." }, ...chat], answer: "4" },
  },
  {
    shape: "messages",
    row: { messages: [...chat, ...reply], prompt: "ignored", tools: "[]" },
    read: { prompt: chat, completion: "4" },
  },
  {
    shape: "verl",
    row: {
      data_source: "openai/gsm8k",
      prompt: chat,
      ability: "math",
      reward_model: { style: "rule", ground_truth: "4" },
      extra_info: { split: "train", index: 11 },
      answer: null,
    },
    read: { prompt: chat, answer: "4", row_id: "11" },
  },
  {
    shape: "feynrl",
    row: { prompt: chat, answer: "2 and 2 are 4", solution: "4" },
    read: { prompt: chat, answer: "2 and 2 are 4" },
  },
  {
    shape: "unpaired_preference",
    row: { prompt: "2+2?", completion: "4", label: true },
    read: { prompt: "2+2?", completion: "4" },
  },
  {
    shape: "prompt_completion",
    row: { prompt: chat, completion: reply },
    read: { prompt: chat, completion: "4" },
  },
  { shape: "prompt_answer", row: { prompt: chat, answer: "4", info: {} }, read: { answer: "4" } },
  { shape: "prompt", row: { prompt: "2+2?", solution: "4" }, read: { prompt: "2+2?" } },
  {
    shape: "question_answer",
    row: { question: "2+2?", answer: "so\n#### 4" },
    read: { prompt: "2+2?", answer: "4", completion: "so\n#### 4" },
  },
  { shape: "question", row: { question: "2+2?" }, read: { prompt: "2+2?" } },
  {
    shape: "problem_answer",
    row: { problem: "2+2?", answer: 4, solution: "so 4" },
    read: { prompt: "2+2?", answer: "4" },
  },
  { shape: "problem", row: { problem: "2+2?", level: 1 }, read: { prompt: "2+2?" } },
  {
    shape: "openrlhf",
    row: { input: chat, output: "4", label: "4" },
    read: { prompt: chat, completion: "4", answer: "4" },
  },
  {
    shape: "openrlhf_messages",
    row: { context_messages: chat, label: 4 },
    read: { prompt: chat, answer: "4" },
  },
  { shape: "text", row: { text: "2+2=4", id: 7 }, read: { prompt: "", completion: "2+2=4" } },
];

Deno.test("an unpaired preference has its label as a truth value or as 0 or 1", () => {
  for (const label of [true, false, 0, 1]) {
    strictEqual(shapeOf({ prompt: "a", completion: "b", label }, {}).name, "unpaired_preference");
  }
  strictEqual(shapeOf({ prompt: "a", completion: "b", label: 2 }, {}).name, "prompt_completion");
});

for (const { shape, row, read } of ROWS) {
  Deno.test(`shapeOf() tells ${shape} by its fields, and its row is read`, () => {
    const found = shapeOf(row, {});
    strictEqual(found.name, shape);
    const { has } = ROW_SHAPES.find(({ name }) => name === shape)!;
    const must = has.map((field) => typeof field === "string" ? field : field.path);
    const telling = shapeFields(row, { found, fields: {} });
    deepStrictEqual(telling.slice(0, must.length), must);
    if (read === undefined) {
      return strictEqual(normalise(row, source, { preference: true }).rejected !== undefined, true);
    }
    const normalised = normalise(row, source) as Record<string, unknown>;
    const kept = Object.fromEntries(Object.keys(read).map((key) => [key, normalised[key]]));
    deepStrictEqual(kept, read);
  });
}

Deno.test("every shape has an example here", () => {
  deepStrictEqual(ROW_SHAPES.map(({ name }) => name), ROWS.map(({ shape }) => shape));
});

Deno.test("shapeOf() follows configured fields first, and knows a row of no shape", () => {
  const row = { prompt: "a", answer: "b", solution: "c" };
  const fields = { prompt: "prompt", answer: "solution" };
  const found = shapeOf(row, fields);
  deepStrictEqual(found, { name: "fields", keys: {} });
  deepStrictEqual(shapeFields(row, { found, fields }), ["prompt", "solution"]);
  strictEqual(shapeOf({ words: "a" }, {}).name, "unknown");
  strictEqual(shapeOf({ prompt: null, question: "q" }, {}).name, "question");
});

Deno.test("shapeOf() finds a nested field of a shape under its whole name too", () => {
  const nested = shapeOf({ prompt: "a", reward_model: { ground_truth: "1" } }, {});
  const flat = shapeOf({ prompt: "a", "reward_model.ground_truth": "1" }, {});
  deepStrictEqual([nested.name, flat.name], ["verl", "verl"]);
});
