import { QuickstartConfig } from "../configs/mod.ts";
import { graph } from "../engine/mod.ts";
import { evaluations } from "./evaluate.ts";
import { exportedModels } from "./exported_models.ts";
import { onlineRounds } from "./online.ts";
import { supervisedRounds, WARMUP_STEPS } from "./supervised.ts";
import { createModel } from "./stages/create_model.ts";
import { exportModel } from "./stages/export_policy.ts";
import { preparePolicy } from "./stages/prepare_policy.ts";

/**
 * A tiny model created at the start: supervised warm-up, reinforcement learning, and evaluation
 * after each.
 */
export const quickstart = graph("quickstart", QuickstartConfig, (g, config) => {
  const evaluate = {
    ...config.evaluate,
    samples_per_prompt: 1,
    greedy: true,
    majority: false,
    files: "together" as const,
  };
  const plan = { ...config, evaluate };
  const model = g.stage(createModel, config.model);

  const warmup = { ...config.trainer, ...WARMUP_STEPS, optimizer: config.warmup.optimizer };
  const raw = g.stage(preparePolicy, {
    model_path: model.field("path"),
    optimizer: warmup.optimizer,
  }, {
    as: "prepare_raw",
  });
  const taught = supervisedRounds(g, {
    ...config,
    ...config.warmup,
    algorithm: { name: "sft" },
    trainer: warmup,
  }, raw);
  const warm = g.stage(exportModel, { policy: taught, name: "warm" }, { as: "export_warm" });

  const trainer = { ...config.trainer, optimizer: config.online.optimizer };
  const start = g.stage(preparePolicy, {
    model_path: warm.field("dir"),
    optimizer: trainer.optimizer,
  });
  const before = evaluations(g, { ...plan, label: "before" }, start);
  const { policy, critic } = onlineRounds(
    g,
    { ...config, ...config.online, lag: 0, trainer },
    start,
  );
  const exported = exportedModels(g, config, { policy, critic });
  const after = evaluations(g, { ...plan, label: "after" }, policy);
  return { policy, ...exported, evaluations: [...before, ...after] };
});
