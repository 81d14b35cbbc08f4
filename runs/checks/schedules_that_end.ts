import { type AlgorithmChoice, hasValueModel } from "../../algs/mod.ts";
import type { Optimizer } from "../../data/mod.ts";

type Block = { optimizer?: Optimizer };
type Steps = { updates_per_batch: number; epochs_per_batch: number };

/** The parts of a configuration that say which optimizer takes how many steps in how many rounds. */
export type Scheduled = {
  algorithm?: AlgorithmChoice;
  rounds?: number;
  trainer?: Block & Partial<Steps>;
  online?: Block & { rounds: number };
  warmup?: Block & { rounds: number } | null;
  value_model?: Block & { warmup_rounds: number } | null;
};

/** `first`: the rounds before the optimizer's first step. */
type Stepped = {
  block: string;
  optimizer?: Optimizer;
  rounds: number;
  steps: number;
  first?: number;
};

/**
 * A sentence for each schedule that reaches a learning rate of 0 while rounds are left: they would
 * train nothing, at full cost. A round may take fewer steps than its settings say (groups that are
 * all filtered), so it is a question and not an error.
 */
export function schedulesThatEnd(config: Scheduled): string[] {
  return steppedBy(config).flatMap(({ block, optimizer, rounds, steps, first = 0 }) => {
    const { name, total_steps, min_ratio } = optimizer?.schedule ?? {};
    if (name === undefined || name === "constant" || !total_steps || min_ratio !== 0) return [];
    const round = first + Math.floor(total_steps / steps) + 1;
    if (round > rounds) return [];
    const needed = (rounds - first) * steps;
    const path = `${block}.optimizer.schedule`;
    return [
      `${path} ends after ${total_steps} optimizer steps, and ${rounds} rounds take ${needed}: ` +
      `from round ${round} on the learning rate is 0. Fix: ${path}.total_steps=${needed}, or ` +
      `${path}.min_ratio=0.1`,
    ];
  });
}

function steppedBy(config: Scheduled): Stepped[] {
  const { algorithm, trainer, online, warmup, value_model } = config;
  const { updates_per_batch = 1, epochs_per_batch = 1 } = trainer ?? {};
  const steps = updates_per_batch * epochs_per_batch;
  const rounds = config.rounds ?? online?.rounds ?? 0;
  const critic = value_model && algorithm && hasValueModel(algorithm) ? value_model : null;
  const first = critic?.warmup_rounds ?? 0;
  return [
    { block: "trainer", optimizer: trainer?.optimizer, rounds, steps, first },
    { block: "online", optimizer: online?.optimizer, rounds, steps, first },
    { block: "warmup", optimizer: warmup?.optimizer, rounds: warmup?.rounds ?? 0, steps: 1 },
    { block: "value_model", optimizer: critic?.optimizer, rounds, steps },
  ];
}
