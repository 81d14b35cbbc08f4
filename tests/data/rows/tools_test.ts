import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { parseExactly } from "../../../data/exact_json.ts";
import { type Message, SourceConfig } from "../../../data/mod.ts";
import { normalise } from "../../../data/rows/normalise.ts";
import type { Columns } from "../../../data/rows/row_fields.ts";
import { readTools, textOfMessage, writtenChat } from "../../../data/rows/tools.ts";

const tool = (name: string) => ({ type: "function", function: { name } });

Deno.test("readTools() reads a list or its JSON text, and puts functions without a frame in one", () => {
  const read = (value: unknown) => JSON.parse(readTools("tools", value)!);
  deepStrictEqual(read([{ ...tool("f"), strict: null }]), [tool("f")]);
  deepStrictEqual(read(JSON.stringify([tool("f")])), [tool("f")]);
  deepStrictEqual(read([{ type: "function", name: "f" }, { name: "g" }]), [tool("f"), tool("g")]);
  for (const none of [undefined, null, "", [], "[]"]) strictEqual(readTools("t", none), undefined);
});

Deno.test("readTools() keeps every number of a JSON text as it is written", () => {
  const limits = '{"minimum":1.0,"maximum":9007199254740993,"multipleOf":1e-7,"default":-0.50}';
  const text = `[{"type":"function","function":{"name":"f","parameters":${limits}}}]`;
  strictEqual(readTools("tools", text), text);
  const bare = `[ { "name" : "f", "parameters" : ${limits}, "strict" : null } ]`;
  strictEqual(readTools("tools", bare), text);
  throws(() => readTools("tools", "[1.0]"), { field: "tools.0", message: /got number 1/ });
});

Deno.test("a row's messages and tools keep floats as its line has them", () => {
  const call = '{"type":"function","function":{"name":"f","arguments":{"x":1.0,"y":[2.50,3]}}}';
  const tool = '{"type":"function","function":{"name":"f","parameters":{"minimum":0.0}}}';
  const line = `{"messages":[{"role":"user","content":"?"},{"role":"assistant","content":null,` +
    `"tool_calls":[${call}],"name":null,"weight":1.0}],"tools":[${tool}]}`;
  const row = normalise(parseExactly(line) as Columns, SourceConfig.parse({ path: "x" }));
  const [message] = row.completion as Message[];
  strictEqual(message!.more, `{"tool_calls":[${call}],"weight":1.0}`);
  strictEqual(row.tools, `[${tool}]`);
  const [written] = writtenChat([message!]) as { tool_calls: { function: object }[] }[];
  deepStrictEqual(written!.tool_calls[0]!.function, {
    name: "f",
    arguments: '{"x":1.0,"y":[2.50,3]}',
  });
});

Deno.test("readTools() refuses what is no list of functions, with the field", () => {
  throws(() => readTools("tools", "a hammer"), { field: "tools", message: /got the text "a ham/ });
  throws(() => readTools("tools", ["hammer"]), { field: "tools.0", message: /got the text "ham/ });
});

Deno.test("writtenChat() has all fields, and arguments as JSON text, which keeps a column's type", () => {
  const call = (input: unknown) => ({ function: { name: "f", arguments: input } });
  const message = { role: "assistant", content: null };
  const more = JSON.stringify({ tool_calls: [call({ a: 1 }), call("{}")] });
  deepStrictEqual(writtenChat([{ ...message, more }]), [
    { ...message, tool_calls: [call('{"a":1}'), call("{}")] },
  ]);
});

Deno.test("textOfMessage() has everything that a message says", () => {
  strictEqual(textOfMessage({ role: "user", content: "a" }), "a");
  strictEqual(textOfMessage({ role: "assistant", content: null, more: "{}" }), "{}");
  strictEqual(textOfMessage({ role: "assistant", content: "a", more: "{}" }), "a\n{}");
});
