import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { compareScores, type RescoredSample } from "../../../runs/trials/rescored.ts";

const sample = (
  before: number | null,
  after: number | null,
  more: Partial<RescoredSample> = {},
): RescoredSample => ({
  loop: "round",
  round: 1,
  draw: 0,
  sample: 0,
  before,
  after,
  parts: after === null ? {} : { f: after },
  failed: null,
  detail: null,
  ...more,
});
const summary = { run: "a", labels: ["f"], kept: 3 };

Deno.test("compareScores() has means, quantiles, and what changed most", () => {
  const found = compareScores(
    [sample(0, 0), sample(1, 4, { draw: 7 }), sample(2, 2), sample(1, 0), sample(null, 2)],
    summary,
  );
  deepStrictEqual(found.before, {
    samples: 4,
    mean: 1,
    std: Math.sqrt(0.5),
    quantiles: [0, 1, 1, 1, 2],
  });
  deepStrictEqual([found.after.mean, found.after.samples], [1.6, 5]);
  deepStrictEqual(found.parts.f, found.after);
  deepStrictEqual([found.samples, found.changed, found.kept], [5, 3, 3]);
  deepStrictEqual(found.most_changed[0], {
    loop: "round",
    round: 1,
    draw: 7,
    sample: 0,
    before: 1,
    after: 4,
  });
  deepStrictEqual(found.most_changed.at(-1)!.before, null, "without a number to compare: last");
});

Deno.test("compareScores() counts samples without a reward by reason", () => {
  const failed = (reason: string, detail: string) => sample(1, null, { failed: reason, detail });
  const found = compareScores(
    [failed("reward_error", "first"), failed("reward_error", "second"), failed("reward_none", "n")],
    summary,
  );
  deepStrictEqual(found.failures, {
    reward_error: { samples: 2, detail: "first" },
    reward_none: { samples: 1, detail: "n" },
  });
  deepStrictEqual(found.after, { samples: 0, mean: null, std: null, quantiles: null });
  strictEqual(found.changed, 3);
});
