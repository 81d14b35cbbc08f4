import { defineProcessReward, type ProcessReward } from "./define.ts";
import { modelSettings as config } from "./model_settings.ts";

/** A trained reward model. It runs in the reward worker; this is only its description. */
export const rewardModel: ProcessReward<"reward_model", typeof config.shape> = defineProcessReward({
  name: "reward_model",
  about: "The score of a trained reward model for prompt and completion.",
  runs_on: "process",
  kept: null,
  right_at: null,
  config,
  asks: (model) => ({ model }),
});
