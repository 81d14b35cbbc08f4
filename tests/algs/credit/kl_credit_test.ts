import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import {
  checkKl,
  creditWithKl,
  klNeeds,
  klReward,
  klSettings,
  steeredKl,
} from "../../../algs/mod.ts";
import type { KlSettings } from "../../../algs/mod.ts";

const Settings = z.strictObject(klSettings()).superRefine(checkKl);
const settings = (changes: z.input<typeof Settings>) => Settings.parse({ kl_coef: 1, ...changes });
const near = (a: number, b: number, tolerance: number) =>
  ok(Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(b)), `${a} is not near ${b}`);

const round = {
  reward: [1, 0],
  group: [0, 0],
  stop: ["stop" as const, "length" as const],
  length: [2, 1],
  old_logp: [[-1, -2], [-0.5]],
  ref_logp: [[-1.5, -1], [-0.5]],
  coef: { kl: 0.2 },
};

Deno.test("creditWithKl() takes the KL of a token and of those after it from the advantage", () => {
  const after = settings({ kl_coef: 0.1, kl_in: "advantage", kl_estimator: "k1" });
  // d is 0.5 and -1 in the first completion, 0 in the second.
  const assign = (c: KlSettings) => creditWithKl(round, c, { advantage: () => [2, -2] }).advantage;
  const taken = assign(after) as number[][];
  [[2 - 0.1 * (0.5 - 1), 2 + 0.1], [-2]].forEach((row, i) =>
    row.forEach((x, t) => near(taken[i]![t]!, x, 1e-15))
  );
  deepStrictEqual(klReward(round, after), [[0, 0], [0]]);
  deepStrictEqual(assign(settings({ kl_coef: 0.1 })), [2, -2]);
});

Deno.test("klNeeds() asks for log-probabilities only where credit reads them", () => {
  deepStrictEqual(klNeeds(Settings.parse({})), []);
  deepStrictEqual(klNeeds(settings({})), []);
  deepStrictEqual(klNeeds(settings({ kl_in: "reward" })), ["old_logp", "ref_logp"]);
  deepStrictEqual(klNeeds(settings({ kl_in: "advantage" })), ["old_logp", "ref_logp"]);
  deepStrictEqual(klNeeds(settings({ kl_target: 6 })), ["old_logp", "ref_logp", "coef"]);
});

Deno.test("klReward() takes each token's weighted estimate, by a steered weight if any", () => {
  deepStrictEqual(
    klReward(round, settings({ kl_coef: 0.1, kl_in: "reward", kl_estimator: "k1" })),
    [
      [-0.05, 0.1],
      [-0],
    ],
  );
  const k3 = klReward(round, settings({ kl_coef: 0.1, kl_in: "reward", kl_target: 1 }));
  near(k3[0]![0]!, -0.2 * (Math.exp(-0.5) - 0.5), 1e-15);
  deepStrictEqual(klReward(round, settings({ kl_coef: 0.1 })), [[0, 0], [0]]);
});

Deno.test("steeredKl() is Ziegler's controller, and nothing where no weight is steered", () => {
  deepStrictEqual(steeredKl(round, settings({})), {});
  // The KL of a completion is (0.5 - 1 + 0) / 2 = -0.25: the error is clipped at -0.2.
  const slow = steeredKl(round, settings({ kl_target: 6, kl_horizon: 10 }));
  near(slow.coef!.kl!, 0.2 * (1 - 0.2 * 2 / 10), 1e-15);
  strictEqual(slow.metrics!["policy/kl_ref_completion"], -0.25);
  const above = { ...round, ref_logp: [[-2, -3], [-0.7]] }; // (1 + 1 + 0.2) / 2 = 1.1
  near(
    steeredKl(above, settings({ kl_target: 1, kl_horizon: 10 })).coef!.kl!,
    0.2 * (1 + 0.1 * 2 / 10),
    1e-15,
  );
});

Deno.test("creditWithKl() takes the KL from rewards before advantages are computed", () => {
  const c = settings({ kl_coef: 0.1, kl_in: "reward", kl_estimator: "k1" });
  const { advantage, metrics } = creditWithKl({ ...round, token_reward: [[8, 0], [16]] }, c, {
    advantage: ({ reward, token_reward }) => {
      deepStrictEqual(token_reward, [[8 - 0.05, 1 + 0.1], [16 - 0]]);
      return reward;
    },
  });
  (advantage as number[]).forEach((a, i) => near(a, [9.05, 16][i]!, 1e-15));
  deepStrictEqual(metrics, { "policy/kl_ref_completion": -0.25 });
});

Deno.test("creditWithKl() normalises advantages once the KL has been taken from them", () => {
  const c = settings({ kl_coef: 0.1, kl_in: "advantage", kl_estimator: "k1" });
  const assigned = creditWithKl(round, c, {
    advantage: () => ({ advantage: [[1, 1], [1]], returns: [[3, 3], [3]], metrics: { own: 5 } }),
    normalise: (advantage) => (advantage as number[][]).map((row) => row.map((a) => 10 * a)),
  });
  [[10.5, 11], [10]].forEach((row, i) =>
    row.forEach((a, t) => near((assigned.advantage as number[][])[i]![t]!, a, 1e-15))
  );
  deepStrictEqual(assigned.returns, [[3, 3], [3]]);
  deepStrictEqual(assigned.metrics, { "policy/kl_ref_completion": -0.25, own: 5 });
});

Deno.test("creditWithKl() adds nothing to credit without a KL", () => {
  const plain = settings({ kl_coef: 0 });
  const assigned = creditWithKl(round, plain, { advantage: ({ reward }) => reward });
  deepStrictEqual(assigned, { advantage: [1, 0] });
});
