import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { appliesToRow, RewardConfig, sourcesOf } from "../../../rewards/mod.ts";
import { ownSettings } from "../../../rewards/entries/entry_settings.ts";

const length = (more: object) =>
  RewardConfig.safeParse({ name: "length", unit: "characters", max: 8, ...more });
const complaint = (more: object) => length(more).error?.issues.map(({ message }) => message).join();

Deno.test("an entry applies to the rows of its sources, whose name begins their ids", () => {
  const on = (source: string | string[]) => ({ on: { source } });
  const rows = ["math/1", "code/1", "math", "1"].map((row_id) => ({ row_id }));
  deepStrictEqual(rows.map((row) => appliesToRow(on("math"), row)), [true, false, false, false]);
  deepStrictEqual(rows.map((row) => appliesToRow(on(["math", "code"]), row)), [
    true,
    true,
    false,
    false,
  ]);
  deepStrictEqual(rows.map((row) => appliesToRow({}, row)), [true, true, true, true]);
  deepStrictEqual([sourcesOf({}), sourcesOf(on("a"))], [undefined, ["a"]]);
});

Deno.test("an entry without these settings is recorded as it always was", () => {
  deepStrictEqual(Object.keys(length({}).data!), ["name", "weight", "unit", "max", "prefer"]);
});

Deno.test("limits are in order, and a memory is a share", () => {
  match(complaint({ clip: [1, 1] })!, /must be \[low, high\] with low below high/);
  strictEqual(complaint({ clip: [-1, 1], normalise: {} }), undefined);
  match(complaint({ normalise: { memory: 0 } })!, /Too small/);
  match(complaint({ on: { source: [] } })!, /Too small|Invalid input/);
});

Deno.test("ownSettings() leaves out what every entry has", () => {
  const entry = length({ weight: 2, clip: [0, 1], on: { source: "a" }, normalise: {} }).data!;
  deepStrictEqual(ownSettings(entry) as object, { unit: "characters", max: 8, prefer: "short" });
});
