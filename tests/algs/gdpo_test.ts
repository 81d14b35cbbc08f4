import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { AlgorithmChoice, ALGORITHMS, creditOf, readsParts } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { gdpo, grpo } = ALGORITHMS;
const exact = { std_epsilon: 0 };
const part = (paid: (number | null)[], weight = 1) => ({ name: `${paid}`, weight, paid });

/** Advantages of groups of two, of what each reward paid. */
function advantages(...parts: ReturnType<typeof part>[]): number[] {
  const samples = parts[0]!.paid;
  return worked(gdpo, exact).credit({
    reward: samples.map((_, i) =>
      parts.reduce((sum, { weight, paid }) => sum + weight * paid[i]!, 0)
    ),
    length: samples.map(() => 1),
    group: samples.map((_, i) => Math.floor(i / 2)),
    parts,
  }).advantage as number[];
}

Deno.test("GDPO tells (1, 1) against (0, 0) from (1, 0) against (0, 0), and GRPO does not", () => {
  const [both, first] = [[1, 0, 1, 0], [1, 0, 0, 0]];
  // Sums of z-scores are ±√2 of the first group and ±√½ of the second; their deviation is √(5 ÷ 3).
  const [wide, narrow] = [Math.sqrt(6 / 5), Math.sqrt(3 / 10)];
  near(advantages(part(both), part(first)), [wide, -wide, narrow, -narrow]);
  const joined = worked(grpo, exact).credit({
    reward: both.map((paid, i) => paid + first[i]!),
    length: [1, 1, 1, 1],
    group: [0, 0, 1, 1],
  });
  near(joined.advantage, [1, -1, 1, -1].map((sign) => sign * Math.SQRT1_2));
});

Deno.test("GDPO weighs each reward by its weight, whatever its scale", () => {
  const [a, b] = [[1, 0, 0, 0], [0, 0, 1, 0]];
  // z-scores ±√½: sums ±3√½ and ±√½, whose deviation is √(10 ÷ 3).
  const [wide, narrow] = [3 * Math.sqrt(3 / 20), Math.sqrt(3 / 20)];
  const expected = [wide, -wide, narrow, -narrow];
  near(advantages(part(a, 3), part(b)), expected);
  near(advantages(part(a, 3), part(b.map((paid) => 1000 * paid))), expected);
});

Deno.test("GDPO leaves samples out of a reward that does not apply to them", () => {
  const applied = advantages(part([1, 0, 1, 0]), part([null, 5, null, null]));
  const [one] = [Math.sqrt(3 / 4)]; // The second reward has no two samples to compare.
  near(applied, [one, -one, one, -one]);
});

Deno.test("GDPO gives groups of equal rewards exactly 0, and a round of them nothing else", () => {
  const some = advantages(part([0.1, 0.7, 0.3, 0.3]), part([2, 0.3, 7, 7]));
  deepStrictEqual(some.slice(2), [0, 0]);
  deepStrictEqual(advantages(part([0.3, 0.3]), part([1, 1])), [0, 0]);
});

Deno.test("GDPO's defaults are GRPO's clip; a KL in the reward is refused", () => {
  deepStrictEqual(defaults(gdpo, "clip_low", "clip_high", "aggregation", "kl_coef"), {
    clip_low: 0.2,
    clip_high: 0.2,
    aggregation: "sequence_mean",
    kl_coef: 0,
  });
  strictEqual(gdpo.group_min, 2);
  const [refused] = refusals(gdpo, { kl_coef: 0.1, kl_in: "reward", kl_estimator: "k1" });
  strictEqual(refused!.split(":")[0], "kl_in");
});

Deno.test("readsParts() is of GDPO alone, and creditOf() names them where a round has none", () => {
  const names = Object.keys(ALGORITHMS).filter((name) =>
    readsParts(AlgorithmChoice.parse({ name }))
  );
  deepStrictEqual(names, ["gdpo"]);
  let message = "";
  try {
    creditOf(AlgorithmChoice.parse({ name: "gdpo" }), {
      reward: [1, 0],
      group: [0, 0],
      stop: ["stop", "stop"],
      length: [1, 1],
    });
  } catch (error) {
    message = (error as Error).message;
  }
  strictEqual(
    message,
    "Cannot assign credit with 'gdpo' because it needs parts: the round has reward, group, stop, " +
      "length",
  );
});
