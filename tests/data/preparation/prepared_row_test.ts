import { deepStrictEqual, notDeepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { TypeClash } from "../../../data/preparation/column_type.ts";
import {
  inColumnOrder,
  inMessages,
  preparedColumns,
  PreparedRow,
  preparedRow,
  sameness,
  splitOf,
  unifiedColumn,
  writtenTypes,
} from "../../../data/preparation/prepared_row.ts";

const chat = [{ role: "user", content: "q" }];
const origin = { data_source: "s", file: "a.jsonl", split: "train" };
const row = (more: object = {}): PreparedRow =>
  PreparedRow.parse({ row_id: "7", prompt: chat, kept: {}, number: 3, ...more });

Deno.test("preparedColumns() has verl's shape, and messages beside messages", () => {
  deepStrictEqual(
    preparedColumns(row({ answer: "2", completion: "so 2", kept: { level: 1 } }), origin),
    {
      data_source: "s",
      prompt: chat,
      completion: [{ role: "assistant", content: "so 2" }],
      reward_model: { style: "rule", ground_truth: "2" },
      extra_info: { index: "7", split: "train", file: "a.jsonl", row: 3 },
      level: 1,
    },
  );
});

Deno.test("preparedColumns() writes tools and arguments as JSON text: no two rows have their types", () => {
  const tools = '[{"type":"function","function":{"name":"f"}}]';
  const called = (input: unknown) => [{ function: { name: "f", arguments: input } }];
  const message = { role: "assistant", content: null };
  const calling = (input: unknown) =>
    row({
      tools,
      completion: [{ ...message, more: JSON.stringify({ tool_calls: called(input) }) }],
    });
  const columns = preparedColumns(calling({ a: 1 }), origin);
  strictEqual(columns.tools, tools);
  deepStrictEqual(columns.completion, [{ ...message, tool_calls: called('{"a":1}') }]);
  const same = (one: PreparedRow) => sameness(one, "row");
  notDeepStrictEqual(same(calling({})), same({ ...calling({}), tools: undefined }));
  notDeepStrictEqual(same(calling({})), same(calling({ a: 2 })));
});

Deno.test("preparedColumns() has TRL's shape for a preference", () => {
  const { chosen, rejected, margin, completion } = preparedColumns(
    row({ prompt: "p", completion: "good", rejected: "bad", margin: 2 }),
    origin,
  );
  deepStrictEqual([chosen, rejected, margin, completion], ["good", "bad", 2, undefined]);
});

Deno.test("inMessages() makes messages of texts, where the columns of any row have them", () => {
  const [text, message] = [{ is: "text" }, { is: "list", item: { is: "null" } }] as const;
  const place = { file: "a.jsonl", line: 1 };
  strictEqual(unifiedColumn("prompt", text, message), message);
  strictEqual(unifiedColumn("chosen", message, text), message);
  throws(() => unifiedColumn("level", message, text), TypeClash);
  const columnTypes = { prompt: { type: message, place }, completion: { type: text, place } };
  const types = writtenTypes(columnTypes);
  const texts = row({ prompt: "p", completion: "c" });
  deepStrictEqual(inMessages(texts, types), {
    ...texts,
    prompt: [{ role: "user", content: "p" }],
    completion: [{ role: "assistant", content: "c" }],
  });
  const plain = { prompt: { type: text, place }, completion: { type: message, place } };
  deepStrictEqual(writtenTypes(plain), plain);
  strictEqual(inMessages(texts, plain).prompt, "p");
  // A whole text stays one: it is read back with an empty prompt.
  const whole = inMessages(row({ prompt: "", completion: "c" }), types);
  deepStrictEqual(whole.prompt, []);
});

Deno.test("inColumnOrder() has every row's columns first, then kept ones by name", () => {
  deepStrictEqual(
    inColumnOrder(["z", "extra_info", "a", "prompt"]),
    "prompt extra_info a z".split(" "),
  );
});

Deno.test("sameness() is of prompts alone, or of all that rows teach and keep", () => {
  const [one, other] = [row({ completion: "a" }), row({ completion: "b", row_id: "8" })];
  deepStrictEqual(sameness(one, "prompt"), sameness(other, "prompt"));
  const [text, another] = ["a", "b"].map((completion) => row({ prompt: "", completion }));
  notDeepStrictEqual(sameness(text!, "prompt"), sameness(another!, "prompt"));
  notDeepStrictEqual(sameness(one, "row"), sameness(other, "row"));
  deepStrictEqual(sameness(one, "row"), sameness(row({ completion: " a\n", row_id: "9" }), "row"));
  notDeepStrictEqual(
    sameness(one, "row"),
    sameness(row({ completion: "a", kept: { i: 1 } }), "row"),
  );
});

Deno.test("splitOf() draws in proportion to the weights, from the id and the seed alone", () => {
  const splits = { train: 8, eval: 2 };
  const ids = Array.from({ length: 2000 }, (_, i) => `row-${i}`);
  const drawn = ids.filter((id) => splitOf(id, { seed: 1, splits }) === "eval");
  strictEqual(drawn.length, 376);
  const reordered = { eval: 2, train: 8 };
  deepStrictEqual(
    ids.filter((id) => splitOf(id, { seed: 1, splits: reordered }) === "eval"),
    drawn,
  );
  notDeepStrictEqual(ids.filter((id) => splitOf(id, { seed: 2, splits }) === "eval"), drawn);
});

Deno.test("preparedRow() has the line or the row that it came from", () => {
  const mapped = { row_id: "1", prompt: "p", kept: {} };
  strictEqual(preparedRow(mapped, { file: "a", line: 4 }).number, 4);
  strictEqual(preparedRow(mapped, { file: "a", row: 5 }).number, 5);
});
