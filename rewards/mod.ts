export { checkedScore, labelOf, RewardConfig, type ScoringFunction, scoringFunctions } from "./config.ts";
export { defineReward, type Reward, type RewardInput, type RewardRow, type Score } from "./define.ts";
export { exactMatch } from "./exact_match.ts";
export { gsm8k } from "./gsm8k.ts";
export { length } from "./length.ts";
export { parsePythonReward, PythonRewardConfig } from "./python.ts";
export { RewardModelConfig, type RewardModelSettings } from "./reward_model.ts";
export { REWARDS } from "./table.ts";
