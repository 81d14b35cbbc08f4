import { charactersInPlace } from "./characters_in_place.ts";
import { exactMatch } from "./exact_match.ts";
import { format } from "./format.ts";
import { gsm8k } from "./gsm8k.ts";
import { judge } from "./judge.ts";
import { length } from "./length.ts";
import { multipleChoice } from "./multiple_choice.ts";
import { remote } from "./remote.ts";

/** Every built-in reward by name. A new one takes its own file and one line here. */
export const REWARDS = {
  characters_in_place: charactersInPlace,
  exact_match: exactMatch,
  format,
  gsm8k,
  judge,
  length,
  multiple_choice: multipleChoice,
  remote,
};
