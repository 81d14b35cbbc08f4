export { answerReader } from "./answer.ts";
export { charactersInPlace } from "./characters_in_place.ts";
export {
  checkedScore,
  functionOf,
  labelOf,
  RewardConfig,
  rowCheck,
  type ScoringFunction,
  scoringFunctions,
  unready,
} from "./entries/config.ts";
export {
  type Called,
  defineReward,
  type Reward,
  type RewardInput,
  type RewardRow,
  type Score,
} from "./define.ts";
export { appliesToRow, sourcesOf } from "./entries/entry_settings.ts";
export { exactMatch } from "./exact_match.ts";
export { format } from "./format.ts";
export { gsm8k } from "./gsm8k.ts";
export { length } from "./length.ts";
export { multipleChoice } from "./multiple_choice.ts";
export { processOf } from "./process_limits.ts";
export { parsePythonReward } from "./python.ts";
export { rewardCalled, rightness, rightOfAll } from "./right.ts";
export { RewardShaping } from "./shaping.ts";
export { REWARDS } from "./table.ts";
