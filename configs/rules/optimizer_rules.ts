import { Optimizer } from "../../data/mod.ts";
import { valueTrainer } from "../../workers/mod.ts";
import type { Issue } from "../problems/issue_text.ts";
import type { Blocks } from "./rule_blocks.ts";

/** Rules about optimizers. A setting without effect is refused, never ignored. */
export const OPTIMIZER_RULES = [wholeMatrices, ownSettings];

/** The optimizers of a configuration, each with the block that has it. */
export function optimizersOf(
  { trainer, value_model, warmup, online }: Blocks,
): [string, Optimizer][] {
  const all = { trainer, value_model, warmup, online };
  return Object.entries(all).flatMap(([block, one]) =>
    one?.optimizer ? [[block, one.optimizer]] : []
  );
}

function wholeMatrices(blocks: Blocks): Issue[] {
  const { trainer, value_model } = blocks;
  if (!trainer) return [];
  return optimizersOf(blocks).flatMap(([block, { name }]) => {
    const of = block === "value_model" ? valueTrainer(trainer, value_model!) : trainer;
    const { engine, zero } = of;
    if (name === "adamw" || engine !== "deepspeed" || zero === 0) return [];
    const what = name === "adamw_8bit"
      ? "has a scale for each block of a tensor"
      : "steps whole matrices";
    const message = `is ${name}, which ${what}, and ZeRO ${zero} shards them: use ` +
      `${block === "value_model" ? block : "trainer"}.zero: 0, or adamw`;
    return [{ path: [block, "optimizer", "name"], message }];
  });
}

function ownSettings(blocks: Blocks): Issue[] {
  const first = Optimizer.parse({});
  return optimizersOf(blocks).flatMap(([block, optimizer]) => {
    if (optimizer.name !== "adafactor") return [];
    return (["betas", "eps"] as const).flatMap((field) => {
      if (`${optimizer[field]}` === `${first[field]}`) return [];
      const message = `is ${JSON.stringify(optimizer[field])}, which adafactor does not read: ` +
        "leave it out";
      return [{ path: [block, "optimizer", field], message }];
    });
  });
}
