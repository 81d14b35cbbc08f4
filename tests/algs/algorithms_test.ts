import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import {
  AlgorithmChoice,
  ALGORITHMS,
  creditOf,
  defineAlgorithm,
  expressionsOf,
  needsOf,
  OnlineAlgorithm,
  ratioBounds,
  SupervisedAlgorithm,
  tokenMean,
} from "../../algs/mod.ts";

const near = (a: readonly number[], b: readonly number[], tolerance: number) =>
  ok(a.length === b.length && a.every((x, i) => Math.abs(x - b[i]!) <= tolerance), `${a} is not near ${b}`);

Deno.test("creditOf() gives GRPO's advantage and refuses an algorithm without credit", () => {
  const round = { reward: [1, 0], group: [0, 0], stop: ["stop" as const, "length" as const], length: [3, 4] };
  const advantage = creditOf(AlgorithmChoice.parse({ name: "grpo", std_epsilon: 0 }), round).advantage;
  near(advantage as number[], [Math.SQRT1_2, -Math.SQRT1_2], 1e-15);
  throws(() => creditOf({ name: "sft" }, round), /learns from rows/);
});

Deno.test("needsOf() asks only for what credit and loss read", () => {
  const grpo = (settings: Record<string, number>) => AlgorithmChoice.parse({ name: "grpo", ...settings });
  deepStrictEqual(needsOf(grpo({}), 1), []);
  deepStrictEqual(needsOf(grpo({}), 2), ["old_logp"]);
  deepStrictEqual(needsOf(grpo({ kl_coef: 0.1 }), 1), ["ref_logp"]);
  deepStrictEqual(needsOf({ name: "sft" }, 4), []);
});

Deno.test("defineAlgorithm() types credit's argument by what it needs", () => {
  defineAlgorithm({
    name: "typed",
    config: z.strictObject({ beta: z.number() }),
    credit: {
      needs: ["ref_logp"],
      assign: ({ reward, ref_logp }, { beta }) => ({ advantage: reward.map((r, i) => r - beta * ref_logp[i]![0]!) }),
    },
    loss: ({ logp, advantage }, { beta }) => ({ loss: tokenMean(logp.mul(advantage).mul(beta)) }),
  });
  defineAlgorithm({
    name: "wrong",
    config: z.strictObject({}),
    // @ts-expect-error `values` is not among what it needs.
    credit: { needs: ["ref_logp"], assign: ({ values }) => ({ advantage: values }) },
    loss: ({ logp }) => ({ loss: tokenMean(logp) }),
  });
});

Deno.test("ratioBounds() is an algorithm's own clip and what its ratio is of; PPO's where it has none", () => {
  const known = {
    ...{ sft: "0.2 0.2 token", grpo: "0.2 0.2 token", dapo: "0.2 0.28 token" },
    ...{ dr_grpo: "0.2 0.2 token", gspo: "0.0003 0.0004 sequence_mean" },
    ...{ rloo: "0.2 0.2 sequence", cispo: " 4 token", ppo: "0.2 0.2 token" },
    ...{ reinforce: "0.2 0.2 token", p3o: "0.2 0.2 token", dpo: "0.2 0.2 token" },
    ...{ reward_model: "0.2 0.2 token", reinforce_plus_plus: "0.2 0.2 token" },
    reinforce_plus_plus_baseline: "0.2 0.2 token",
  };
  const own = Object.keys(known).map((name) => {
    const bounds = ratioBounds(AlgorithmChoice.parse({ name }));
    return [name, Object.values(bounds).join(" ")];
  });
  deepStrictEqual(Object.fromEntries(own), known);
  deepStrictEqual(ratioBounds(AlgorithmChoice.parse({ name: "grpo", clip_high: 0.5 })).high, 0.5);
  const file = {
    name: "python" as const,
    source: "my.py",
    settings: {},
    value_model: false,
    mask_truncated: false,
    sha256: null,
  };
  deepStrictEqual(ratioBounds(file, { clip_high: 3, other: "x" }), { low: null, high: 3, ratio: "token" });
  deepStrictEqual(ratioBounds(file, { temperature: 1 }), { low: 0.2, high: 0.2, ratio: "token" });
});

type GrpoChoice = Extract<OnlineAlgorithm, { name: "grpo" }>;

Deno.test("the choices of a configuration come from the table", () => {
  const { name, clip_low, clip_high, kl_coef, aggregation } = AlgorithmChoice.parse({ name: "grpo" }) as GrpoChoice;
  deepStrictEqual([name, clip_low, clip_high, kl_coef, aggregation], ["grpo", 0.2, 0.2, 0, "sequence_mean"]);
  // But for what is newer than some records: absent there, it means what was done before.
  const { kl_scaled: _, ...today } = OnlineAlgorithm.parse({ name: "grpo" }) as Record<string, unknown>;
  deepStrictEqual({ ...today, kl_scaled: true }, AlgorithmChoice.parse({ name: "grpo" }));
  strictEqual(SupervisedAlgorithm.safeParse({ name: "grpo" }).success, false);
  strictEqual(AlgorithmChoice.safeParse({ name: "grpo", clip: 0.2 }).success, false);
  // @ts-expect-error Not in the table.
  throws(() => expressionsOf({ name: "nope" }));
  for (const algorithm of Object.values(ALGORITHMS)) {
    for (const [field, schema] of Object.entries(algorithm.config.shape)) {
      ok((schema as z.ZodType).description, `${algorithm.name}.${field} is described`);
    }
  }
});

Deno.test("an algorithm is its own file and one line of the table: nothing else but compatibility profiles names it", async () => {
  const root = new URL("../../", import.meta.url);
  const names = Object.keys(ALGORITHMS).map((name) => new RegExp(`["'\`]${name}["'\`]|\\b${name}\\b(?=[.(])`));
  const named: string[] = [];
  for (const room of ["algs/", "workers/", "engine/"]) {
    for await (const file of sources(new URL(room, root))) {
      const path = file.pathname.slice(root.pathname.length);
      const own = path === "algs/table.ts" || path === "algs/profiles.ts" ||
        Object.keys(ALGORITHMS).some((name) => path === `algs/${name}.ts`);
      const text = await Deno.readTextFile(file);
      if (!own && names.some((name) => name.test(text))) named.push(path);
    }
  }
  deepStrictEqual(named, []);
});

async function* sources(folder: URL): AsyncGenerator<URL> {
  for await (const entry of Deno.readDir(folder)) {
    if (entry.isDirectory && !entry.name.startsWith("__")) yield* sources(new URL(`${entry.name}/`, folder));
    if (entry.isFile && /\.(ts|py)$/.test(entry.name)) yield new URL(entry.name, folder);
  }
}
