import { deepStrictEqual, match } from "node:assert/strict";
import { type Row, tableOf } from "../../../data/mod.ts";
import { unbalancedLabels } from "../../../runs/checks/unbalanced_labels.ts";
import { pairsOf, preferenceConfig } from "../../flows/preference_fixtures.ts";

/** Rows with these labels. */
const labelled = (desirable: number, undesirable: number) =>
  tableOf(
    Array.from({ length: desirable + undesirable }, (_, n): Row => ({
      row_id: `${n}`,
      prompt: `${n}`,
      completion: "a",
      label: n < desirable,
      columns: {},
    })),
    "labelled",
  );
const warnings = async (train = labelled(6, 2), algorithm: Record<string, unknown> = {}) =>
  await unbalancedLabels(preferenceConfig("m", { algorithm: { name: "kto", ...algorithm } }), {
    train,
  });

Deno.test("unbalancedLabels() asks where one side outweighs the other, and names better weights", async () => {
  deepStrictEqual(await warnings(), [
    "6 desirable completions of weight 1 and 2 undesirable ones of weight 1 count as 3.00 to 1, " +
    "but 1 to 1.33 to 1 is recommended. Fix: algorithm.desirable_weight from 0.333 to 0.444, or " +
    "algorithm.undesirable_weight from 2.25 to 3.00",
  ]);
  match(
    (await warnings(labelled(2, 4)))[0]!,
    /desirable_weight from 2\.00 to 2\.67, or .* 0\.375 to 0\.500$/,
  );
});

Deno.test("unbalancedLabels() is content from 1 to 1 up to 4 to 3, by count and weight", async () => {
  for (const weights of [{ desirable_weight: 0.333 }, { undesirable_weight: 2.25 }]) {
    deepStrictEqual(await warnings(labelled(6, 2), weights), []);
  }
  deepStrictEqual(await warnings(labelled(3, 3)), []);
  deepStrictEqual(await warnings(labelled(4, 3)), []);
  deepStrictEqual(await warnings(pairsOf(3)), []);
  deepStrictEqual((await warnings(labelled(5, 3))).length, 1);
  deepStrictEqual((await warnings(labelled(3, 4))).length, 1);
});

Deno.test("unbalancedLabels() asks about completions of one kind alone", async () => {
  match((await warnings(labelled(3, 0)))[0]!, /^all 3 completions to train on are desirable: /);
  match((await warnings(labelled(0, 2)))[0]!, /^all 2 completions to train on are undesirable: /);
});

Deno.test("unbalancedLabels() asks nothing of other algorithms and of generated pairs", async () => {
  const rows = { train: pairsOf(3) };
  deepStrictEqual(await unbalancedLabels(preferenceConfig("m"), rows), []);
  const generated = { algorithm: { name: "kto" }, task: { digits: 2 }, data: undefined };
  deepStrictEqual(await unbalancedLabels(preferenceConfig("m", generated), rows), []);
});

Deno.test("unbalancedLabels() asks about a split with one prompt, where the KL is estimated", async () => {
  const one = tableOf(
    [true, false].map((label, n): Row => ({
      row_id: `${n}`,
      prompt: "p",
      completion: `${n}`,
      label,
      columns: {},
    })),
    "one",
  );
  const both = async (algorithm: Record<string, unknown>) =>
    await unbalancedLabels(preferenceConfig("m", { algorithm: { name: "kto", ...algorithm } }), {
      train: labelled(3, 3),
      held_out: one,
    });
  const [question, ...others] = await both({});
  match(question!, /^all rows of 'held_out' have the same prompt, .*loss=apo_zero_unpaired$/);
  deepStrictEqual(others, []);
  deepStrictEqual(await both({ loss: "apo_zero_unpaired" }), []);
});
