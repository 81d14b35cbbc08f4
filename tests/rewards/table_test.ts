import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { parseRewards } from "../../configs/mod.ts";
import {
  functionOf,
  labelOf,
  RewardConfig,
  REWARDS,
  rowCheck,
  scoringFunctions,
} from "../../rewards/mod.ts";
import { keptBy } from "../../rewards/entries/kept_by.ts";

/** Settings of those that need some. */
const SETTINGS: Record<string, object> = {
  format: { pattern: "x" },
  judge: { url: "http://x/v1", model: "m", template: "{completion}" },
  length: { unit: "characters", max: 8 },
  python: { source: "/x.py:f" },
  remote: { url: "http://x" },
  reward_model: { path: "/rm" },
};
const NAMES = RewardConfig.options.map(({ shape }) => (shape.name as { value: string }).value);
const entryOf = (name: string) => ({ name, ...SETTINGS[name] });

Deno.test("REWARDS has every reward that can be configured, under its own name", () => {
  deepStrictEqual(Object.values(REWARDS).map(({ name }) => name), Object.keys(REWARDS));
  deepStrictEqual(NAMES, Object.keys(REWARDS));
});

Deno.test("each reward declares where it runs, how it is kept and what is right", () => {
  for (const { name, about, runs_on, kept, right_at } of Object.values(REWARDS)) {
    ok(about.endsWith("."), name);
    ok(["engine", "process"].includes(runs_on), name);
    ok(kept === null || ["code", "settings"].includes(kept.by), name);
    ok(right_at === null || Number.isFinite(right_at), name);
  }
});

for (const name of NAMES) {
  Deno.test(`${name} can be named wherever rewards are`, () => {
    const entry = RewardConfig.parse(entryOf(name));
    deepStrictEqual(parseRewards(JSON.stringify(entryOf(name)), "/"), [entry]);
    const [{ runs_on, source, model, kept, name: label }] = scoringFunctions([entry]) as [
      ReturnType<typeof scoringFunctions>[number],
    ];
    strictEqual(label, labelOf(entry));
    strictEqual(runs_on, REWARDS[entry.name].runs_on);
    strictEqual(source !== null || model !== undefined, runs_on === "process");
    strictEqual(functionOf(entry)?.source ?? null, source);
    deepStrictEqual(kept, keptBy(entry).kept);
    strictEqual(typeof (rowCheck(entry)({ columns: {} }) ?? ""), "string");
  });

  Deno.test(`${name} has its own settings in a configuration`, () => {
    const { shape } = RewardConfig.options[NAMES.indexOf(name)]!;
    for (const [key, value] of Object.entries(REWARDS[name as keyof typeof REWARDS].config.shape)) {
      strictEqual((shape as Record<string, unknown>)[key], value, key);
    }
  });
}
