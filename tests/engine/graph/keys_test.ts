import { match, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import { encodeId, isUnder, type ItemId, itemId, segment } from "../../../engine/graph/keys.ts";
import { defineStage, graph } from "../../../engine/mod.ts";
import { bench, NoConfig, runOnce, soleStage } from "../fixtures.ts";

Deno.test("segment() never gives two ids one spelling, and a prefix is a whole segment", () => {
  strictEqual(segment("score", 17), "score#17");
  const ids = ["a/b", "a%2Fb", "a b", "a+b", "ä", "a#b", "~"];
  strictEqual(new Set(ids.map(encodeId)).size, ids.length);
  ok(ids.every((id) => !encodeId(id).includes("/")));
  ok(isUnder("train#1", "train") && isUnder("train/step#1", "train") && isUnder("train", "train"));
  ok(!isUnder("train_more", "train") && !isUnder("train~2", "train"));
});

Deno.test("encodeId() gives any two ids different spellings, none with a separator", () => {
  const ids = fc.uniqueArray(fc.string({ unit: "binary" }), { minLength: 2, maxLength: 20 });
  fc.assert(fc.property(ids, (all) => {
    const encoded = all.map(encodeId);
    strictEqual(new Set(encoded).size, all.length);
    ok(encoded.every((one) => !/[/#]/.test(one)));
  }));
});

Deno.test("itemId() is what `id` finds, else the item itself, else its `id` field", () => {
  strictEqual(itemId({ id: "a", n: 7 }, ((item: { n: number }) => item.n) as ItemId), 7);
  strictEqual(itemId("plain"), "plain");
  strictEqual(itemId({ id: 3 }), 3);
  for (const item of [null, true, {}, { id: null }, [1]]) strictEqual(itemId(item), undefined);
});

Deno.test("an id that is no valid Unicode fails a map or a step as bad data, by name", async () => {
  const list = defineStage({
    name: "list",
    version: 1,
    input: z.strictObject({}),
    output: z.array(z.string()),
    run: () => ["\ud800"],
  });
  const echo = defineStage({
    name: "echo",
    version: 1,
    output: z.string(),
    input: z.strictObject({ item: z.string() }),
    run: ({ item }) => item,
  });
  const step = soleStage((_, ctx) => ctx.step("one", () => 1, { id: "\ud800" })).definition;
  const mapped = graph("map", NoConfig, (g) => g.map(echo, g.stage(list, {})));
  for (const definition of [step, mapped]) {
    const outcome = await runOnce(bench(), definition as typeof step);
    ok(outcome.status === "failed");
    strictEqual(outcome.error.cause_kind, "bad_data");
    match(outcome.error.message, /Cannot make a key of the id "\\ud800" because it is not valid/);
  }
});
