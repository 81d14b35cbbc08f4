/**
 * What users of other frameworks bring, written only from those frameworks' documentation: a data
 * file and a reward function each, run by a configuration alone. Sources:
 * `tests/e2e/peer_setups/README.md`.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureTestEnvironments } from "../environments.ts";
import { type NamedRows, namedRows, tryReward } from "../../runs/mod.ts";
import { at, rl, show, withFreshHome } from "../crash/runs.ts";
import { runPython } from "./smollm2.ts";

const SETUPS = fileURLToPath(new URL("peer_setups", import.meta.url));

type Setup = { shape: string; styles: Record<string, string>; metrics: string[]; config?: string };
const TRL: Setup = {
  shape: "prompt",
  styles: { reward_func: "trl" },
  metrics: ["reward/reward_func/characters/mean"],
};
/** How each is recognised, and what it reports besides the reward. */
const SETUP: Record<string, Setup> = {
  trl: TRL,
  // The same rows as a directory of `datasets.save_to_disk`.
  trl_saved: { ...TRL, config: "trl/saved.yaml" },
  verl: { shape: "verl", styles: { compute_score: "verl" }, metrics: [] },
  openrlhf: {
    shape: "fields",
    styles: { reward_func: "openrlhf" },
    metrics: ["reward/reward_func/filter_score/mean", "reward/reward_func/distinct/mean"],
  },
  feynrl: { shape: "feynrl", styles: { compute_score: "feynrl" }, metrics: [] },
  verifiers: { shape: "prompt_answer", styles: { distinct: "verifiers" }, metrics: [] },
  slime: { shape: "fields", styles: { custom_rm: "slime" }, metrics: [] },
};

const ROUNDS = 3;
const SAMPLES = ROUNDS * 2 * 4;

Deno.test("data and rewards of six frameworks train by configuration alone", async (t) => {
  const { HOLDFAST_TEST_PYTHON } = await ensureTestEnvironments();
  await withFreshHome(async (home) => {
    const place = at({ home, store: null });
    const model = `${home}/chat`;
    await runPython(HOLDFAST_TEST_PYTHON!, [`${SETUPS}/small_chat_model.py`, model], {});
    for (const [name, { shape, styles, metrics, ...setup }] of Object.entries(SETUP)) {
      await t.step(name, async () => {
        const path = `${SETUPS}/${setup.config ?? `${name}/config.yaml`}`;
        const config = [path, `model.path=${model}`];
        const [{ table }] = await namedRows(path, { home }) as [NamedRows];
        deepStrictEqual(table.files!.map(({ shapes }) => shapes.map(({ name }) => name)), [[
          shape,
        ]]);
        for (const [reward, style] of Object.entries(styles)) {
          const tried = await tryReward(`${dirname(path)}/reward.py:${reward}`, {
            data: path,
            home,
            count: 8,
            timeout_ms: 10_000,
          });
          strictEqual(tried.style!.style, style);
        }
        const ran = await rl(["run", ...config, "--id", name, ...place], {});
        strictEqual(ran.code, 0, ran.output);
        const shown = await show(home, name);
        deepStrictEqual([shown.status, shown.round], ["done", ROUNDS]);
        strictEqual(shown.generated.samples, SAMPLES);
        deepStrictEqual(shown.ledger.failed, {}, ran.output);
        ok(shown.metrics["reward/mean"]! > 0, "every completion has a character");
        ok(shown.metrics["reward/std"]! > 0, "what is random differs");
        for (const metric of metrics) ok(metric in shown.metrics, metric);
      });
    }
  });
});
