/** What a fork and a resume say of each setting of each flow, changed alone. */
import type { z } from "zod";
import { ALGORITHMS } from "../../../algs/mod.ts";
import { type Flow, FLOWS, settingChanges } from "../../../configs/mod.ts";
import { changedAt, leaves, otherValues } from "../../configs/each_setting.ts";

/** Everything that may be left out is there, so that each setting has a place. */
const trained = {
  trainer: { lora: {} },
  checkpoints: { keep_best: { metric: "reward/mean" } },
};
const rewards = {
  reward: [
    "characters_in_place",
    "exact_match",
    "gsm8k",
    "length",
    { name: "python", source: "a.py:f" },
    { name: "reward_model", path: "m" },
  ].map((one) => typeof one === "string" ? { name: one } : one),
};
const data = { train: [{ path: "a.jsonl" }], eval: [{ path: "b.jsonl" }] };
const warmup = { rounds: 4, rows_per_round: 2 };
const sizes = { rounds: 4, prompts_per_round: 2, samples_per_prompt: 2 };

const CONFIGS: { [name: string]: Record<string, unknown> & { flow: Flow } } = {
  online: {
    flow: "online",
    ...sizes,
    model: { path: "m" },
    data,
    algorithm: { name: "grpo" },
    ...rewards,
    ...trained,
  },
  supervised: {
    flow: "supervised",
    rounds: 4,
    rows_per_round: 2,
    model: { path: "m" },
    data,
    ...rewards,
    ...trained,
  },
  evaluate: {
    flow: "evaluate",
    model: { path: "m" },
    data: { eval: data.eval },
    ...rewards,
    trainer: { lora: {} },
  },
  quickstart: { flow: "quickstart", warmup, online: sizes, ...rewards, ...trained },
  preference: {
    flow: "preference",
    rounds: 4,
    pairs_per_round: 2,
    model: { path: "m" },
    data,
    task: {},
    warmup,
    ...trained,
  },
};
const STEERED = {
  reference: { refresh_rounds: 2 },
  algorithm: { name: "grpo", kl_coef: 0.1, kl_target: 0.5 },
};
const EVALUATED = ["online", "supervised", "preference"];

const LOOPS: Record<Flow, string[]> = {
  online: ["round"],
  supervised: ["step"],
  evaluate: [],
  quickstart: ["step", "round"],
  preference: ["step", "round"],
  prepare: [],
};

type Fields = Record<string, unknown>;
/** The paths that a fork refuses. */
export type Refused = (
  schema: z.ZodType,
  changing: { before: Fields; after: Fields; loop: string; round: number },
) => string[];

/** Each configuration, and which of its settings it is there for. */
function cases(): { name: string; flow: Flow; config: Fields; below: string }[] {
  const plain = Object.entries(CONFIGS).map(([name, config]) => ({
    name,
    flow: config.flow,
    below: "",
    config: EVALUATED.includes(name) ? { evaluate: {}, ...config } : config as Fields,
  }));
  const online = plain[0]!.config;
  const algorithms = Object.keys(ALGORITHMS).flatMap((name) =>
    plain.flatMap(({ flow, config }) => {
      const algorithm = name === "python" ? { name, source: "a.py" } : { name };
      const whole = { ...config, algorithm };
      const fits = flow !== "quickstart" && FLOWS[flow].safeParse(whole).success &&
        "algorithm" in FLOWS[flow].shape;
      return fits
        ? [{ name: `${flow} ${name}`, flow, config: whole as Fields, below: "algorithm" }]
        : [];
    })
  );
  const steered = (below: string) => ({
    name: "online steered",
    flow: "online" as const,
    below,
    config: { ...online, ...STEERED } as Fields,
  });
  return [...plain, ...algorithms, steered("reference"), steered("algorithm")];
}

/**
 * One line for each setting: `path | forks that refuse it | resume`, and the configurations it is
 * in.
 */
export function verdicts(refused: Refused, replans: readonly string[]): string[] {
  const lines = new Map<string, string[]>();
  for (const { name, flow, config, below } of cases()) {
    const schema: z.ZodType = FLOWS[flow];
    const before = schema.parse(config) as Fields;
    for (const leaf of leaves(schema, before)) {
      const path = leaf.path.join(".");
      const [other] = otherValues(leaf);
      if (other === undefined || !path.startsWith(below) || path === "flow") continue;
      const after = changedAt(before, leaf.path, other);
      const places = LOOPS[flow].flatMap((loop) => [0, 2].map((round) => ({ loop, round })));
      const forks = places.flatMap(({ loop, round }) => {
        const paths = refused(schema, { before, after, loop, round });
        return paths.length === 0 ? [] : [`${loop}/${round} ${paths}`];
      });
      const [change] = settingChanges(schema, { from: before, to: after });
      const resume = replans.includes(path) ? "replan" : change?.read_by ?? "refused";
      const line = `${path} | ${forks.join(", ") || "free"} | ${resume}`;
      lines.set(line, [...lines.get(line) ?? [], name]);
    }
  }
  return [...lines].map(([line, names]) => `${line} | ${names.join(", ")}`).toSorted();
}
