import { cispo } from "./cispo.ts";
import { dapo } from "./dapo.ts";
import { dpo } from "./dpo.ts";
import { dr_grpo } from "./dr_grpo.ts";
import { gdpo } from "./gdpo.ts";
import { gmpo } from "./gmpo.ts";
import { grpo } from "./grpo.ts";
import { gspo } from "./gspo.ts";
import { kto } from "./kto.ts";
import { p3o } from "./p3o.ts";
import { ppo } from "./ppo.ts";
import { reinforce } from "./reinforce.ts";
import { reinforce_plus_plus } from "./reinforce_plus_plus.ts";
import { reinforce_plus_plus_baseline } from "./reinforce_plus_plus_baseline.ts";
import { reward_model } from "./reward_model.ts";
import { rloo } from "./rloo.ts";
import { sapo } from "./sapo.ts";
import { sft } from "./sft.ts";

/**
 * Algorithms of the online flow by name: they learn from rewards. A new one takes its own file and
 * one line here.
 */
export const ONLINE_ALGORITHMS = {
  grpo,
  dr_grpo,
  dapo,
  gspo,
  gmpo,
  cispo,
  sapo,
  gdpo,
  p3o,
  ppo,
  rloo,
  reinforce,
  reinforce_plus_plus,
  reinforce_plus_plus_baseline,
};

/** Algorithms of the supervised flow by name: they learn from completions. */
export const SUPERVISED_ALGORITHMS = { sft };

/**
 * Algorithms of the preference flow by name: they learn from pairs, or from completions with a
 * label.
 */
export const PREFERENCE_ALGORITHMS = { dpo, kto, reward_model };

/** Every algorithm that ships, by its name. */
export const ALGORITHMS:
  & typeof ONLINE_ALGORITHMS
  & typeof SUPERVISED_ALGORITHMS
  & typeof PREFERENCE_ALGORITHMS = {
    ...ONLINE_ALGORITHMS,
    ...SUPERVISED_ALGORITHMS,
    ...PREFERENCE_ALGORITHMS,
  };
