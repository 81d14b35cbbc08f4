import { deepStrictEqual } from "node:assert/strict";
import { mixtureOf, TrainingData } from "../../configs/mod.ts";
import { MIXTURE_RULES } from "../../configs/mixture.ts";

const block = (...weights: unknown[]) =>
  TrainingData.parse({
    train: weights.map((weight, i) => ({ path: `dir/${"ab"[i]}.jsonl`, weight })),
  });
const messages = (...weights: unknown[]) =>
  MIXTURE_RULES.flatMap((rule) => rule({ flow: "online", data: block(...weights) }))
    .map(({ message }) => message);

Deno.test("mixtureOf() is null without weights, and names each source after its file", () => {
  deepStrictEqual(mixtureOf(undefined), null);
  deepStrictEqual(mixtureOf(block(undefined, undefined)), null);
  deepStrictEqual(mixtureOf(block(1, [[1, 0.5]])), {
    sources: [{ name: "a", weight: 1 }, { name: "b", weight: [[1, 0.5]] }],
  });
  const steered = mixtureOf({ ...block(undefined, undefined), ...curriculum });
  deepStrictEqual(steered, {
    sources: [{ name: "a", weight: 1 }, { name: "b", weight: 1 }],
    ...curriculum,
  });
});

const curriculum = TrainingData.pick({ curriculum: true })
  .parse({ curriculum: {} }) as { curriculum: NonNullable<TrainingData["curriculum"]> };

Deno.test("weights of a mixture leave a source to draw from in every round", () => {
  deepStrictEqual(messages([[1, 1], [9, 0]], [[1, 0], [9, 1]]), []);
  deepStrictEqual(messages([[1, 1], [9, 0]], [[9, 0], [12, 1]]), [
    "every source has the weight 0 in round 9: give one of them more",
  ]);
  deepStrictEqual(messages(0, 0), [
    "every source has the weight 0 in round 1: give one of them more",
  ]);
});
