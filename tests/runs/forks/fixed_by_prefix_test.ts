/**
 * `setting_verdicts.txt` was written when fork and resume had lists of paths: what they said then,
 * they say today.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import { z } from "zod";
import { OnlineConfig, PreferenceConfig, settingsOf } from "../../../configs/mod.ts";
import { setting } from "../../../data/mod.ts";
import { fixedByPrefix, readsOtherRows } from "../../../runs/forks/fixed_by_prefix.ts";
import { REPLAN_FIELDS } from "../../../workers/mod.ts";
import { type Refused, verdicts } from "./setting_verdicts.ts";

const RECORDED = Deno.readTextFileSync(new URL("setting_verdicts.txt", import.meta.url)).trim()
  .split("\n");
const refused: Refused = (schema, changing) =>
  fixedByPrefix({ schema, ...changing }).map(({ path }) => path);

/** The recorded lines that do not hold now; newer algorithms may have a setting of a line too. */
function lostIn(now: readonly string[]): string[] {
  const split = (line: string) => {
    const [setting, fork, resume, configs] = line.split(" | ");
    return { verdict: `${setting} | ${fork} | ${resume}`, configs: configs!.split(", ") };
  };
  const found = new Map(now.map(split).map(({ verdict, configs }) => [verdict, new Set(configs)]));
  return RECORDED.filter((line) => {
    const { verdict, configs } = split(line);
    return !configs.every((config) => found.get(verdict)?.has(config));
  });
}

Deno.test("fork and resume say of every setting of every flow what they said in 0.1.0", () => {
  ok(RECORDED.length > 380, "verdicts are recorded");
  deepStrictEqual(lostIn(verdicts(refused, REPLAN_FIELDS)), []);
});

Deno.test("a setting whose rule was changed would be found", () => {
  const freed: Refused = (schema, changing) =>
    refused(schema, changing).filter((path) => path !== "seed");
  const lost = lostIn(verdicts(freed, REPLAN_FIELDS.slice(1)));
  deepStrictEqual([...new Set(lost.map((line) => line.split(" | ")[0]!))], [
    "seed",
    REPLAN_FIELDS[0],
  ]);
});

const why = "it is measured with it";
const Gauged = z.strictObject({
  seed: z.int(),
  gauge: z.int().register(setting, { fork: { fixed: "round_1", why } }),
  loops: z.int().register(setting, { fork: "rounds" }),
  rows: z.string().register(setting, { rows: true }),
  free: z.string(),
});

Deno.test("fixedByPrefix() reads the schema of a custom graph; what that says nothing of means what it means in the shipped flows", () => {
  const before = { seed: 1, gauge: 2, loops: 4, rows: "a", free: "a" };
  const changed = (after: Partial<typeof before>, round = 2) =>
    fixedByPrefix({ schema: Gauged, before, after: { ...before, ...after }, loop: "main", round });
  deepStrictEqual(changed({ free: "b", rows: "b", loops: 2 }), []);
  deepStrictEqual(changed({ seed: 2 }, 0).map(({ path }) => path), ["seed"]);
  deepStrictEqual(changed({ gauge: 3 }), [{ path: "gauge", why }]);
  deepStrictEqual(changed({ gauge: 3 }, 0), []);
  const fewer = "is 1, but the prefix already has 2 rounds";
  deepStrictEqual(changed({ loops: 1 }), [{ path: "loops", why: fewer }]);
  const differs = (after: Partial<typeof before>) =>
    readsOtherRows({ schema: Gauged, before, after: { ...before, ...after } });
  deepStrictEqual([differs({ rows: "b" }), differs({ free: "b" })], [true, false]);
});

Deno.test("fixedByPrefix() names a changed block once", () => {
  const [schema, model] = [OnlineConfig, { path: "m" }];
  const before = schema.parse({
    flow: "online",
    rounds: 4,
    prompts_per_round: 2,
    samples_per_prompt: 2,
    model,
    algorithm: { name: "grpo" },
    data: { train: [{ path: "a" }] },
    reward: [{ name: "gsm8k" }],
  });
  const after = { ...before, model: { ...before.model, path: "other", turn_end: "eos_token" } };
  const found = fixedByPrefix({ schema, before, after, loop: "round", round: 0 });
  deepStrictEqual(found.map(({ path }) => path), ["model"]);
  ok(settingsOf(schema).some(({ path }) => path === "model.turn_end"));
});

Deno.test("fixedByPrefix() keeps whether held-out rows are pairs or completions with a label", () => {
  const model = { path: "m" };
  const config = { flow: "preference", rounds: 4, pairs_per_round: 2, model };
  const changed = (from: object, to: object, round = 2) =>
    fixedByPrefix({
      schema: PreferenceConfig,
      before: PreferenceConfig.parse({ ...config, algorithm: from }),
      after: PreferenceConfig.parse({ ...config, algorithm: to }),
      loop: "round",
      round,
    }).map(({ path }) => path);
  const [dpo, kto] = [{ name: "dpo" }, { name: "kto" }];
  deepStrictEqual(changed(dpo, kto), ["algorithm"]);
  deepStrictEqual(changed(kto, dpo), ["algorithm"]);
  deepStrictEqual(changed(kto, { ...kto, loss: "apo_zero_unpaired" }), ["algorithm"]);
  deepStrictEqual(changed(kto, { ...kto, beta: 0.5 }), []);
  deepStrictEqual(changed(dpo, kto, 0), []);
});
