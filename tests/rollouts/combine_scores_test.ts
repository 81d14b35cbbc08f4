import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { type Combined, combineScores, combineTokens, type Shaped } from "../../rollouts/mod.ts";

const reward = (name: string, more: Partial<Combined> = {}): Combined => ({
  name,
  weight: 1,
  ...more,
});
const of = (more: Partial<Shaped> = {}): Shaped => ({ stop: "stop", tokens: 3, ...more });

Deno.test("combineScores() sums weight x score over the rewards that apply and are paid", () => {
  const list = [reward("right", { weight: 2 }), reward("short", { weight: 0.5, when: "right" })];
  strictEqual(combineScores(list, { right: 1, short: 4 }, of()), 4);
  strictEqual(combineScores(list, { right: 0, short: 4 }, of()), 0);
  strictEqual(combineScores(list, { short: 4 }, of()), null, "its condition does not apply");
  strictEqual(combineScores(list, { right: null, short: null }, of()), null);
});

Deno.test("scores are normalised, clipped, then weighted; conditions read them as they are", () => {
  const list = [
    reward("model", { weight: 10, clip: [-1, 1] }),
    reward("brief", { when: "model" }),
  ];
  const normalised = (name: string, score: number) => name === "model" ? score - 8 : score;
  strictEqual(combineScores(list, { model: 7.5, brief: 1 }, of({ normalised })), -4);
  strictEqual(combineScores(list, { model: 20, brief: 1 }, of({ normalised })), 11);
});

Deno.test("a cut completion gets an amount beside, in place of or times its reward", () => {
  const [list, scores] = [[reward("r")], { r: 4 }];
  const cut = (truncated: NonNullable<Shaped["shaping"]>["truncated"], stop: Shaped["stop"]) =>
    combineScores(list, scores, of({ stop, shaping: { truncated } }));
  strictEqual(cut({ add: -0.5 }, "length"), 3.5);
  strictEqual(cut({ set: -1 }, "length"), -1);
  strictEqual(cut({ times: 0.5 }, "length"), 2);
  strictEqual(cut({ set: -1 }, "stop"), 4);
});

Deno.test("tokens cost, and the limits of the sum come last", () => {
  const shaping = { truncated: { set: 5 }, token_cost: 0.5, clip: [-2, 3] as const };
  const sum = (r: number, stop: Shaped["stop"] = "stop") =>
    combineScores([reward("r")], { r }, of({ stop, shaping }));
  strictEqual(sum(4), 2.5);
  strictEqual(sum(-4), -2);
  strictEqual(sum(0, "length"), 3, "5 - 1.5, clipped");
});

Deno.test("combineTokens() weighs what the paid rewards give each token", () => {
  const list = [
    reward("process", { weight: 2 }),
    reward("right"),
    reward("brief", { when: "right", weight: 4 }),
  ];
  const tokens = { process: [1, 0, 2], brief: [0, 1, 0] };
  deepStrictEqual(combineTokens(list, { process: 3, right: 1, brief: 1 }, tokens), [2, 4, 4]);
  deepStrictEqual(combineTokens(list, { process: 3, right: 0, brief: 1 }, tokens), [2, 0, 4]);
  deepStrictEqual(combineTokens(list, { process: null, right: 1, brief: 1 }, tokens), [0, 4, 0]);
  strictEqual(combineTokens(list, { process: 3, right: 1, brief: 1 }, {}), null);
});
