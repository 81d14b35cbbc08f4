import { type ChatSettings, EVAL_PROBLEMS } from "../../data/mod.ts";
import { groupMin } from "../../algs/mod.ts";
import { ALGORITHM_RULES } from "./algorithm_rules.ts";
import { setsHaveNames } from "../evaluation_sets.ts";
import type { Issue } from "../problems/issue_text.ts";
import { MIXTURE_RULES } from "../mixture.ts";
import type { ValueModelConfig } from "../../workers/mod.ts";
import { MEMORY_RULES } from "./memory_rules.ts";
import { METRIC_RULES } from "./metric_rules.ts";
import { MODEL_RULES } from "./model_rules.ts";
import { OPTIMIZER_RULES, optimizersOf } from "./optimizer_rules.ts";
import { PREFERENCE_RULES } from "./preference_rules.ts";
import { PREPARE_RULES } from "../prepare_config.ts";
import { REWARD_RULES } from "./reward_rules.ts";
import type { Blocks } from "./rule_blocks.ts";

/** Rules between fields. Each names the place, the problem and the fix. */
const RULES: ((blocks: Blocks) => Issue[])[] = [
  schedules,
  truncatedSampling,
  greedyTraining,
  torchIsOneProcess,
  updatesDivideRounds,
  groupsAreLargeEnough,
  lagIsZero,
  evaluationHasProblems,
  setsHaveNames,
  greedyRepeats,
  digitsAreEnough,
  onlyPromptsAreCut,
  everyIsOfSaved,
  templateIsRendered,
  ...MIXTURE_RULES,
  ...ALGORITHM_RULES,
  ...PREFERENCE_RULES,
  ...PREPARE_RULES,
  ...REWARD_RULES,
  ...MEMORY_RULES,
  ...OPTIMIZER_RULES,
  ...METRIC_RULES,
  ...MODEL_RULES,
];

export function brokenRules(blocks: Blocks): Issue[] {
  return RULES.flatMap((rule) => rule(blocks));
}

function schedules(blocks: Blocks): Issue[] {
  return optimizersOf(blocks).flatMap(([block, optimizer]) => {
    const { name, total_steps, warmup_steps, stable_steps } = optimizer.schedule;
    const path = [block, "optimizer", "schedule"];
    if (name !== "constant" && total_steps === null) {
      const message =
        `missing; the ${name} schedule needs the number of optimizer steps it runs over`;
      return [{ path: [...path, "total_steps"], message }];
    }
    if (total_steps !== null && warmup_steps >= total_steps) {
      const message = `must be less than total_steps (${total_steps}), got ${warmup_steps}`;
      return [{ path: [...path, "warmup_steps"], message }];
    }
    if (name === "constant" && stable_steps > 0) {
      const message = "has no effect with a constant schedule: set schedule.name to linear or " +
        "cosine, or leave it out";
      return [{ path: [...path, "stable_steps"], message }];
    }
    if (total_steps !== null && warmup_steps + stable_steps >= total_steps) {
      const message = `must be less than total_steps without the warm-up ` +
        `(${total_steps - warmup_steps}), got ${stable_steps}`;
      return [{ path: [...path, "stable_steps"], message }];
    }
    return [];
  });
}

function trainsOnSamples(flow: Blocks["flow"]): boolean {
  return flow === "online" || flow === "quickstart";
}

function truncatedSampling({ flow, sampler, rollouts }: Blocks): Issue[] {
  if (!trainsOnSamples(flow) || !sampler || !rollouts || rollouts.allow_truncated_sampling) {
    return [];
  }
  const fix = "or set rollouts.allow_truncated_sampling: true";
  const { top_p, top_k, min_p, repetition_penalty } = sampler;
  const cut = "training on truncated samples biases the loss because their log-probabilities are " +
    "renormalised";
  const bent = "training on penalised samples biases the loss because the trainer computes " +
    "log-probabilities without the penalty";
  const wrong: [boolean, keyof typeof sampler, string][] = [
    [top_p < 1, "top_p", `is ${top_p}; ${cut}: use 1, ${fix}`],
    [top_k > 0, "top_k", `is ${top_k}; ${cut}: use -1, ${fix}`],
    [min_p > 0, "min_p", `is ${min_p}; ${cut}: use 0, ${fix}`],
    [
      repetition_penalty !== 1,
      "repetition_penalty",
      `is ${repetition_penalty}; ${bent}: use 1, ${fix}`,
    ],
  ];
  return wrong.flatMap(([is, name, message]) => is ? [{ path: ["sampler", name], message }] : []);
}

function greedyTraining({ flow, sampler }: Blocks): Issue[] {
  if (!trainsOnSamples(flow) || sampler?.temperature !== 0) return [];
  return [{
    path: ["sampler", "temperature"],
    message:
      "is 0; greedy samples of a prompt are all equal, so there is nothing to learn from: use 1",
  }];
}

function torchIsOneProcess({ trainer, value_model }: Blocks): Issue[] {
  if (trainer === undefined) return [];
  return [
    ...ofOneProcess("trainer", trainer),
    ...ofOneProcess("value_model", valueModelSettings(trainer, value_model)),
  ];
}

function ofOneProcess(
  block: string,
  { engine, ranks, zero }: { engine: string; ranks: number | null; zero: number | null },
): Issue[] {
  if (engine !== "torch") return [];
  const fix = `or set ${block}.engine: deepspeed`;
  return [
    ...((ranks ?? 1) === 1 ? [] : [{
      path: [block, "ranks"],
      message: `is ${ranks}; the torch engine runs one rank: use 1, ${fix}`,
    }]),
    ...((zero ?? 0) === 0 ? [] : [{
      path: [block, "zero"],
      message: `is ${zero}; the torch engine has no ZeRO: use 0, ${fix}`,
    }]),
  ];
}

/**
 * What the value model's block sets itself, and what it cannot inherit if its engine differs from
 * the trainer's.
 */
function valueModelSettings(
  trainer: NonNullable<Blocks["trainer"]>,
  value_model: ValueModelConfig | undefined,
) {
  const { engine = null, ranks = null, zero = null } = value_model ?? {};
  const other = engine !== null && engine !== trainer.engine;
  return {
    engine: engine ?? trainer.engine,
    ranks: ranks ?? (other ? trainer.ranks : null),
    zero: zero ?? (other ? trainer.zero : null),
  };
}

function updatesDivideRounds(blocks: Blocks): Issue[] {
  const updates = blocks.trainer?.updates_per_batch ?? 1;
  const counts: [string[], number | undefined][] = [
    [["prompts_per_round"], blocks.prompts_per_round],
    [["rows_per_round"], blocks.rows_per_round],
    [["pairs_per_round"], blocks.pairs_per_round],
    [["online", "prompts_per_round"], blocks.online?.prompts_per_round],
  ];
  return counts.flatMap(([path, count]) =>
    count === undefined || count % updates === 0 ? [] : [{
      path,
      message: `is ${count}; must be a multiple of trainer.updates_per_batch (${updates})`,
    }]
  );
}

function groupsAreLargeEnough({ algorithm, samples_per_prompt, online }: Blocks): Issue[] {
  const least = algorithm === undefined ? 1 : groupMin(algorithm);
  const sizes: [string[], number | undefined][] = [
    [["samples_per_prompt"], samples_per_prompt],
    [["online", "samples_per_prompt"], online?.samples_per_prompt],
  ];
  return sizes.flatMap(([path, size]) =>
    size === undefined || size >= least ? [] : [{
      path,
      message: `is ${size}; ${algorithm!.name} compares the samples of a prompt: at least ${least}`,
    }]
  );
}

function lagIsZero({ lag }: Blocks): Issue[] {
  if (lag === undefined || lag === 0) return [];
  return [{
    path: ["lag"],
    message: `is ${lag}; generation cannot run ahead of training yet: use 0`,
  }];
}

function evaluationHasProblems({ flow, evaluate, data, task, reward }: Blocks): Issue[] {
  if (!evaluate || flow === "quickstart") return [];
  const sets = evaluate.sets ?? [];
  const all_scored = sets.length > 0 && data?.eval.length === 0 &&
    sets.every((set) => set.reward);
  const message = "is given together with task, which makes the pairs; leave one of them out";
  return [
    ...(task && sets.length > 0 ? [{ path: ["evaluate", "sets"], message: message }] : []),
    ...(data?.eval.length === 0 && sets.length === 0
      ? [{ path: ["data"], message: "evaluate needs problems: add data.eval, or evaluate.sets" }]
      : []),
    ...(reward?.length === 0 && !(evaluate.loss && !sets.some((set) => set.reward)) && !all_scored
      ? [{ path: ["evaluate"], message: "evaluation needs a reward to score with: add reward" }]
      : []),
  ];
}

function greedyRepeats({ flow, evaluate, sampler }: Blocks): Issue[] {
  if (
    flow !== "evaluate" || sampler?.temperature !== 0 || (evaluate?.samples_per_prompt ?? 1) === 1
  ) return [];
  return [{
    path: ["evaluate", "samples_per_prompt"],
    message: `is ${
      evaluate!.samples_per_prompt
    }; at sampler.temperature 0 all samples of a problem are equal: use 1`,
  }];
}

function digitsAreEnough({ flow, task, evaluate }: Blocks): Issue[] {
  const what = flow === "preference" ? "pairs" : "problems";
  const held = evaluate?.[what] ?? EVAL_PROBLEMS; // They are held out even if nothing is evaluated.
  if (!task || held < 10 ** task.digits) return [];
  return [{
    path: ["evaluate", what],
    message: `is ${held}; with task.digits ${task.digits} there are ${
      10 ** task.digits
    } ${what}, some for training`,
  }];
}

function onlyPromptsAreCut({ flow, data }: Blocks): Issue[] {
  if (data?.on_long_prompt !== "truncate_left" || trainsOnSamples(flow) || flow === "evaluate") {
    return [];
  }
  const message =
    "is truncate_left; a row that teaches an answer is not truncated because its question would " +
    "change: use drop";
  return [{ path: ["data", "on_long_prompt"], message }];
}

function everyIsOfSaved({ checkpoints }: Blocks): Issue[] {
  const { every_rounds = 1, keep_every = null, keep_weights_every = null } = checkpoints ?? {};
  return Object.entries({ keep_every, keep_weights_every }).flatMap(([name, rounds]) => {
    if (rounds === null || rounds % every_rounds === 0) return [];
    const message =
      `is ${rounds}; a checkpoint is saved every ${every_rounds} rounds: use a multiple of it`;
    return [{ path: ["checkpoints", name], message }];
  });
}

/**
 * Turns that end with the tokenizer's token do not record a template's arguments: nothing would be
 * rendered with them.
 */
function templateIsRendered({ model = {}, reward = [] }: Blocks): Issue[] {
  const blocks: [Issue["path"], object][] = [
    [["model"], model],
    ...reward.map((entry, i): [Issue["path"], object] => [["reward", i], entry]),
  ];
  return blocks.flatMap(([path, block]) => {
    const { turn_end, template_arguments = {} } = block as ChatSettings;
    const [name] = Object.keys(template_arguments);
    if (turn_end !== "eos_token" || name === undefined) return [];
    const message =
      `is eos_token; chats are then rendered without template_arguments, and '${name}' would be ` +
      "ignored: leave turn_end out, or template_arguments";
    return [{ path: [...path, "turn_end"], message }];
  });
}
