export { answerReader } from "./answer.ts";
export { charactersInPlace } from "./characters_in_place.ts";
export {
  checkedScore,
  functionOf,
  isImported,
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
export { appliesToRow, sourcesOf } from "./entry_settings.ts";
export { exactMatch } from "./exact_match.ts";
export { format } from "./format.ts";
export { gsm8k } from "./gsm8k.ts";
export { unableToJudge } from "./judge.ts";
export { length } from "./length.ts";
export { multipleChoice } from "./multiple_choice.ts";
export { parsePythonReward, processOf, PythonRewardConfig } from "./python.ts";
export { unreachable } from "./remote.ts";
export { rewardCalled, rightness, rightOfAll } from "./right.ts";
export { RewardShaping } from "./shaping.ts";
export { REWARDS } from "./table.ts";
