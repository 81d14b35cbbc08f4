import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { restoreRecorded } from "../../configs/mod.ts";
import { setting } from "../../data/mod.ts";

const surplus = z.enum(["reuse", "discard"]).default("discard").register(setting, {
  before: { value: "reuse" },
})
  .describe("D");
const Block = z.strictObject({ kept: z.number().default(1), surplus });
const Kind = z.discriminatedUnion("name", [
  z.strictObject({ name: z.literal("old") }),
  z.strictObject({ name: z.literal("new"), surplus }),
]);
const Whole = z.strictObject({
  block: Block.prefault({}),
  kind: Kind,
  each: z.array(Block).default([]),
  either: z.union([z.strictObject({ a: z.string() }), z.strictObject({ b: z.string(), surplus })]),
});

Deno.test("restoreRecorded() gives an absent setting what it meant before it existed, wherever it stands", () => {
  const recorded = { kind: { name: "new" }, each: [{ kept: 2 }], either: { b: "x" } };
  deepStrictEqual(Whole.parse(restoreRecorded(Whole, recorded)), {
    block: { kept: 1, surplus: "reuse" },
    kind: { name: "new", surplus: "reuse" },
    each: [{ kept: 2, surplus: "reuse" }],
    either: { b: "x", surplus: "reuse" },
  });
  strictEqual(Whole.parse(recorded).block.surplus, "discard");
});

Deno.test("restoreRecorded() leaves what is written as it is", () => {
  const whole = Whole.parse({ kind: { name: "old" }, either: { a: "x" } });
  deepStrictEqual(restoreRecorded(Whole, whole), whole);
});
