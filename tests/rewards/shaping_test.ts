import { deepStrictEqual, match } from "node:assert/strict";
import { RewardShaping } from "../../rewards/mod.ts";

const complaint = (value: unknown) =>
  RewardShaping.safeParse(value).error?.issues.map(({ message }) => message).join("; ") ?? "";

Deno.test("a cut completion gets exactly one of three amounts", () => {
  const truncated = { set: -1 };
  deepStrictEqual(RewardShaping.parse({ truncated }), { truncated });
  match(complaint({ truncated: { set: -1, add: 1 } }), /needs either `add`, `set` or `times`/);
  match(complaint({ truncated: {} }), /needs either `add`, `set` or `times`/);
});

Deno.test("a filter's range, limits and costs make sense", () => {
  const filter = { by: "remote/filter_score", above: 0, below: 1 };
  deepStrictEqual(RewardShaping.parse({ filter }), { filter });
  match(complaint({ filter: { ...filter, above: 1 } }), /must be less than `below`/);
  match(complaint({ clip: [1, 0] }), /low below high/);
  match(complaint({ token_cost: -1 }), /Too small/);
});
