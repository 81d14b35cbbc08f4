export { charactersInPlace } from "./characters_in_place.ts";
export {
  checkedScore,
  labelOf,
  RewardConfig,
  rowCheck,
  type ScoringFunction,
  scoringFunctions,
} from "./config.ts";
export {
  defineReward,
  type Reward,
  type RewardInput,
  type RewardRow,
  type Score,
} from "./define.ts";
export { exactMatch } from "./exact_match.ts";
export { gsm8k } from "./gsm8k.ts";
export { length } from "./length.ts";
export { parsePythonReward, processOf, PythonRewardConfig } from "./python.ts";
export { rightness, rightOfAll } from "./right.ts";
export { REWARDS } from "./table.ts";
