import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { readableJson, withDefinitions } from "../../configs/schema_definitions.ts";

const LONG = "A description that is longer than any reference to a definition would ever be, "
  .repeat(2);
const path = { type: "string", description: LONG };
const length = {
  type: "object",
  description: LONG,
  properties: { name: { type: "string", const: "length" }, file: path },
};

Deno.test("withDefinitions() says equal parts once, named after their setting or entry", () => {
  const schema = withDefinitions({
    type: "object",
    properties: {
      type: path, // A setting may have the name of a keyword.
      reward: { anyOf: [length, { type: "array", items: length }] },
      rounds: { type: "integer" },
      last: { type: "integer" },
    },
  });
  const [file, entry] = ["type", "length"].map((name) => ({ $ref: `#/$defs/${name}` }));
  deepStrictEqual(schema, {
    type: "object",
    properties: {
      type: file,
      reward: { anyOf: [entry, { type: "array", items: entry }] },
      rounds: { type: "integer" },
      last: { type: "integer" },
    },
    $defs: {
      type: path,
      length: { ...length, properties: { name: length.properties.name, file } },
    },
  });
});

Deno.test("withDefinitions() gives different parts of one setting different names", () => {
  const other = { ...path, minLength: 1 };
  const block = (one: unknown, title: string) => ({
    title,
    type: "object",
    properties: { path: one },
  });
  const blocks = [path, path, other, other].map((one, i) => block(one, `${i}`));
  const { $defs } = withDefinitions({ anyOf: blocks });
  deepStrictEqual($defs, { path, path_2: other });
});

Deno.test("readableJson() is the same JSON, on one line where it fits", () => {
  const value = { list: [1, "a\\n  b"], none: null, long: [{ key: LONG }, {}], empty: [] };
  const text = readableJson(value, 40);
  deepStrictEqual(JSON.parse(text), value);
  strictEqual(
    text,
    `{
  "list": [ 1, "a\\\\n  b" ],
  "none": null,
  "long": [
    {
      "key": "${LONG}"
    },
    {}
  ],
  "empty": []
}`,
  );
});
