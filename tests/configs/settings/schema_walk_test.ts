import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import {
  bare,
  fieldPaths,
  optionsOf,
  schemaAt,
  valueAt,
} from "../../../configs/settings/schema_walk.ts";

const schema = z.strictObject({
  name: z.string(),
  trainer: z.strictObject({ lr: z.number() }).prefault({ lr: 1 }),
  reward: z.array(z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("match"), strict: z.boolean() }),
    z.strictObject({ kind: z.literal("length"), max: z.int() }),
  ])),
});

Deno.test("bare() unwraps defaults, optionals and nulls in any order", () => {
  const text = z.string();
  strictEqual(bare(text.nullable().optional().default("a")), text);
  strictEqual(bare(text), text);
});

Deno.test("schemaAt() follows a value through defaults, lists and unions", () => {
  const value = { reward: [{ kind: "match" }, { kind: "length" }] };
  const at = (...path: (string | number)[]) => schemaAt(schema, { path, value });
  ok(at("trainer", "lr") instanceof z.ZodNumber);
  ok(at("reward", 0, "strict") instanceof z.ZodBoolean);
  strictEqual(at("reward", 1, "strict"), undefined);
  strictEqual(at("nothing"), undefined);
  strictEqual(at("name", "inside"), undefined);
});

Deno.test("schemaAt() of an unknown member is the union", () => {
  const found = schemaAt(schema, { path: ["reward", 0], value: { reward: [{ kind: "other" }] } });
  ok(found instanceof z.ZodDiscriminatedUnion);
  deepStrictEqual([...optionsOf(found).keys()], ["match", "length"]);
});

Deno.test("fieldPaths() lists blocks and their fields, but enters no list", () => {
  deepStrictEqual(fieldPaths(schema), ["name", "trainer", "trainer.lr", "reward"]);
  deepStrictEqual(fieldPaths(z.string()), []);
});

Deno.test("valueAt() is undefined where there is nothing", () => {
  const value = { a: [{ b: null }] };
  deepStrictEqual(valueAt(value, ["a", 0, "b"]), null);
  for (const path of [["a", 1, "b"], ["a", 0, "b", "c"], ["x"]]) {
    strictEqual(valueAt(value, path), undefined);
  }
});
