import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { RewardConfig, REWARDS } from "../../rewards/mod.ts";

Deno.test("REWARDS lists each reward under its own name", () => {
  for (const [name, reward] of Object.entries(REWARDS)) strictEqual(reward.name, name);
});

Deno.test("REWARDS can be configured, each with its own settings", () => {
  const options = RewardConfig.options as readonly { shape: Record<string, unknown> }[];
  const named = new Map(
    options.map(({ shape }) => [(shape.name as { value: string }).value, Object.keys(shape)]),
  );
  for (const [name, reward] of Object.entries(REWARDS)) {
    const settings = Object.keys(reward.config.shape);
    deepStrictEqual(named.get(name)!.filter((field) => settings.includes(field)), settings);
  }
});
