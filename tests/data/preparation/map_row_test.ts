import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import {
  dialogueOf,
  lastBoxed,
  numberOf,
  rowMapper,
  textOf,
  textsOf,
} from "../../../data/preparation/map_row.ts";
import { contentId } from "../../../data/content_id.ts";
import { PreparedSource } from "../../../data/preparation/prepared_source.ts";
import type { RowNeeds } from "../../../data/rows/source_row.ts";

const place = { file: "rows.jsonl", line: 7 };
const mapped = (columns: Record<string, unknown>, source: object, needs?: RowNeeds) =>
  rowMapper(PreparedSource.parse({ path: "rows.jsonl", ...source }), needs)(columns, place);

Deno.test("lastBoxed() has the content of the last box, with balanced braces", () => {
  strictEqual(lastBoxed("\\boxed{1} so \\boxed{\\frac{1}{2}}."), "\\frac{1}{2}");
  strictEqual(lastBoxed("\\fbox{3}"), null);
  strictEqual(lastBoxed("\\fboxed {3}"), "3");
  strictEqual(lastBoxed("\\boxed{\\{1, 2\\}}"), "\\{1, 2\\}");
  strictEqual(lastBoxed("\\boxed{1} \\boxed{ }"), "1");
  strictEqual(lastBoxed("\\boxed{1"), null);
  strictEqual(lastBoxed("1"), null);
});

Deno.test("rowMapper() takes an answer out of its box, and completes with the whole", () => {
  const source = { fields: { prompt: "problem", answer: "solution" }, answer_as: "boxed" };
  const columns = { problem: "1+1", solution: "it is \\boxed{2}", level: "Level 1" };
  deepStrictEqual(mapped(columns, { ...source, keep: { level: "level" } }), {
    row_id: contentId(columns),
    prompt: "1+1",
    completion: "it is \\boxed{2}",
    answer: "2",
    kept: { level: "Level 1" },
  });
  strictEqual(mapped({ problem: "1+1", solution: "it is 2" }, source), null);
  strictEqual(mapped({ problem: "1+1" }, source), null);
});

Deno.test("numberOf() reads a number with or without its unit, and nothing else", () => {
  const numbers = {
    "9 (apples)": "9",
    "-3.5": "-3.5",
    "$1,200 (dollars)": "$1,200",
    " 7( cm ) ": "7",
    "4 (m)": "4",
    "288 (t-shirts)": "288",
    "2 (T-shirts)": "2",
  };
  for (const [text, number] of Object.entries(numbers)) strictEqual(numberOf(text), number, text);
  // As ASDiv has them, and units that are factors.
  const others = [
    "Yes",
    "4:5",
    "3/7",
    "6; 4",
    "5 (years old); 15 (years old)",
    "11:45 p.m.",
    "1st",
    "",
  ];
  const scaled = [
    "12 (million)",
    "3 (dozens)",
    "12 (k)",
    "3 (Million $)",
    "9 apples",
    "9 (a (b))",
    "1,20",
    "9 (apples",
  ];
  for (const text of [...others, ...scaled]) strictEqual(numberOf(text), null, text);
});

Deno.test("rowMapper() takes the number out of an answer with a unit, or drops the row", () => {
  const source = { fields: { prompt: "{body} {question}", answer: "answer" }, answer_as: "number" };
  const columns = { body: "Seven and two.", question: "How many?", answer: "9 (apples)" };
  const row = mapped(columns, source);
  deepStrictEqual([row?.prompt, row?.answer, row?.completion], [
    "Seven and two. How many?",
    "9",
    undefined,
  ]);
  strictEqual(mapped({ ...columns, answer: "4:5" }, source), null);
});

Deno.test("dialogueOf() splits texts into messages, and joins turns of one speaker", () => {
  deepStrictEqual(dialogueOf("\n\nHuman: Hi\n\nthere\n\nAssistant: Yes\n\nAssistant: and no"), [
    { role: "user", content: "Hi\n\nthere" },
    { role: "assistant", content: "Yes\n\nand no" },
  ]);
  strictEqual(dialogueOf("Hi"), null);
  strictEqual(dialogueOf("\n\nHuman: Hi\n\nAssistant: "), null);
});

Deno.test("rowMapper() reads a preference of dialogues by their common beginning", () => {
  const source = { dialogue: "human_assistant" };
  const start = "\n\nHuman: a\n\nAssistant: b\n\nHuman: c";
  const row = mapped(
    { chosen: `${start}\n\nAssistant: good`, rejected: `${start}\n\nAssistant: bad` },
    source,
    "preference",
  );
  deepStrictEqual(row && [row.prompt, row.completion, row.rejected], [
    [
      { role: "user", content: "a" },
      { role: "assistant", content: "b" },
      { role: "user", content: "c" },
    ],
    "good",
    "bad",
  ]);
  strictEqual(mapped({ chosen: "good", rejected: "bad" }, source, "preference"), null);
  throws(
    () => mapped({ chosen: start, rejected: start }, source, "preference"),
    /rows\.jsonl:7 rejected: is the same as 'chosen'/,
  );
});

Deno.test("rowMapper() names a row by its own id, or by its content if it should", () => {
  const columns = { id: 3, prompt: "p" };
  strictEqual(mapped(columns, {})!.row_id, "3");
  strictEqual(mapped(columns, { ids: "content" })!.row_id, contentId(columns));
  strictEqual(mapped(columns, { ids: "content", name: "n" })!.row_id, `n/${contentId(columns)}`);
});

Deno.test("rowMapper() keeps images and nested fields as they are, and only what a row has", () => {
  const image = { bytes: { base64: "AAEC" }, path: "1.png" };
  const keep = { images: "image", unit: "meta.unit", absent: "absent", none: "none" };
  const row = mapped({ prompt: "p", image, meta: { unit: "cm" }, none: null }, { keep });
  deepStrictEqual(row!.kept, { images: image, unit: "cm", none: null });
});

Deno.test("textsOf() has every text of a row, and textOf() those of messages", () => {
  const messages = [{ role: "user", content: "a" }, { role: "assistant", content: "b" }];
  strictEqual(textOf(messages), "a\nb");
  strictEqual(textOf(undefined), "");
  deepStrictEqual(textsOf({ row_id: "1", prompt: messages, completion: "c" }), ["a\nb", "c"]);
});

Deno.test("rowMapper() repairs a row before everything else, what it keeps too", () => {
  const repairs = [{ where: { question: "1+1" }, set: { answer: "2", level: "easy" } }];
  const columns = { question: "1+1", answer: "3", level: "hard" };
  const row = mapped(columns, { repairs, keep: { level: "level" } })!;
  deepStrictEqual([row.answer, row.kept], ["2", { level: "easy" }]);
});
