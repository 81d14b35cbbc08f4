import { deepStrictEqual } from "node:assert/strict";
import { Sampling, StopReason } from "../../data/mod.ts";

const refused = (changes: object) =>
  Sampling.safeParse(changes).error?.issues.map(({ path }) => path.join("."));

Deno.test("Sampling by default draws from the model's whole distribution", () => {
  deepStrictEqual(Sampling.parse({}), {
    temperature: 1,
    top_p: 1,
    top_k: -1,
    min_p: 0,
    repetition_penalty: 1,
    tokens_max: 128,
    stop: [],
    stop_token_ids: [],
    ignore_eos: false,
  });
});

Deno.test("Sampling takes greedy and the bounds of each number, and nothing beyond them", () => {
  const within = { temperature: 0, top_p: 1, top_k: -1, min_p: 1, tokens_max: 1 };
  deepStrictEqual(refused(within), undefined);
  const beyond = {
    temperature: -0.1,
    top_p: 1.1,
    top_k: -2,
    min_p: 1.1,
    repetition_penalty: 0,
    tokens_max: 0,
  };
  deepStrictEqual(refused(beyond), Object.keys(beyond));
  deepStrictEqual(refused({ top_p: 0 }), ["top_p"], "no token has probability 0");
  deepStrictEqual(refused({ top_k: 1.5, tokens_max: 1.5 }), ["top_k", "tokens_max"]);
});

Deno.test("two samplings share no list of stop strings", () => {
  const one = Sampling.parse({});
  one.stop.push("\n");
  deepStrictEqual(Sampling.parse({}).stop, []);
});

Deno.test("StopReason tells a completion that was cut from one that ended", () => {
  deepStrictEqual(["stop", "length"].map((reason) => StopReason.parse(reason)), ["stop", "length"]);
  deepStrictEqual(StopReason.safeParse("eos").success, false);
});
