import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { randomStream } from "../../engine/mod.ts";
import { bootstrapIntervals, majorityRight, passAtK, passHatK } from "../../flows/mod.ts";
import { passColumns, type Vote } from "../../flows/evaluation_statistics.ts";

const vote = (answer: string | null, right = false): Vote => ({ answer, right });

Deno.test("passColumns() has a value for every k that a problem has samples for", () => {
  const problems = [{ n: 2, c: 1 }, { n: 1, c: 0 }, { n: 0, c: 0 }];
  deepStrictEqual(passColumns(problems, passAtK), [[0.5, 0, null], [1, null, null]]);
  deepStrictEqual(passColumns(problems, passHatK), [[0.5, 0, null], [0, null, null]]);
  deepStrictEqual(passColumns([], passAtK), []);
});

Deno.test("passAtK() of all samples is whether any is right, of one their share", () => {
  fc.assert(fc.property(fc.nat({ max: 40 }), fc.nat({ max: 40 }), (c, wrong) => {
    const n = c + wrong;
    fc.pre(n > 0);
    strictEqual(passAtK(n, c, n), c > 0 ? 1 : 0);
    ok(Math.abs(passAtK(n, c, 1) - c / n) < 1e-12);
  }));
});

Deno.test("majorityRight() counts votes, splits ties, ignores samples without answers", () => {
  strictEqual(majorityRight([vote("7", true), vote("8"), vote("7", true)]), 1);
  strictEqual(majorityRight([vote("7", true), vote("8"), vote("8")]), 0);
  strictEqual(majorityRight([vote("7", true), vote("8")]), 0.5);
  strictEqual(majorityRight([vote("7", true), vote(null), vote(null)]), 1);
  strictEqual(majorityRight([vote(null), vote(null)]), 0);
  strictEqual(majorityRight([]), 0);
});

Deno.test("majorityRight() of one sample is whether it is right; order is irrelevant", () => {
  const votes = fc.array(fc.record({ answer: fc.constantFrom("1", "2", "3", null) }), {
    minLength: 1,
    maxLength: 12,
  }).map((all) => all.map(({ answer }) => vote(answer, answer === "2")));
  fc.assert(fc.property(votes, (all) => {
    strictEqual(majorityRight(all), majorityRight(all.toReversed()));
    strictEqual(majorityRight(all.slice(0, 1)), all[0]!.answer === "2" ? 1 : 0);
  }));
});

Deno.test("bootstrapIntervals() repeats, holds the mean, and needs two problems", () => {
  const values = Array.from({ length: 60 }, (_, i) => i % 3 === 0 ? 1 : 0);
  const of = () => bootstrapIntervals({ a: values, b: values }, randomStream("seed"));
  const { a, b } = of();
  deepStrictEqual(of(), { a, b });
  deepStrictEqual(a, b); // The same problems for every column.
  ok(a![0] < 1 / 3 && 1 / 3 < a![1]);
  deepStrictEqual(bootstrapIntervals({ a: [1], b: [null, 1] }, randomStream("seed")), {});
  deepStrictEqual(bootstrapIntervals({ a: [1, 1, 1] }, randomStream("seed")), { a: [1, 1] });
});

Deno.test("bootstrapIntervals() hold the true share about 95 times of 100", () => {
  const random = randomStream("coverage");
  const share = 0.4;
  let held = 0;
  for (let run = 0; run < 200; run++) {
    const values = Array.from({ length: 80 }, () => random() < share ? 1 : 0);
    const [low, high] = bootstrapIntervals({ values }, random).values!;
    if (low <= share && share <= high) held++;
  }
  ok(held >= 180 && held <= 198, `${held} of 200`);
});
