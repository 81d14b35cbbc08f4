import { charactersInPlace } from "./characters_in_place.ts";
import { code } from "./code.ts";
import { exactMatch } from "./exact_match.ts";
import { format } from "./format.ts";
import { gsm8k } from "./gsm8k.ts";
import { judge } from "./judge.ts";
import { length } from "./length.ts";
import { math } from "./math.ts";
import { multipleChoice } from "./multiple_choice.ts";
import { python } from "./python.ts";
import { remote } from "./remote.ts";
import { rewardModel } from "./reward_model.ts";
import { wordF1 } from "./word_f1.ts";

/**
 * Every reward by name, wherever it runs. A new one takes its own file and one line here: what it
 * declares there decides everywhere else.
 */
export const REWARDS = {
  characters_in_place: charactersInPlace,
  exact_match: exactMatch,
  format,
  gsm8k,
  judge,
  length,
  multiple_choice: multipleChoice,
  remote,
  word_f1: wordF1,
  code,
  math,
  python,
  reward_model: rewardModel,
};
