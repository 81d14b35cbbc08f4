import { charactersInPlace } from "./characters_in_place.ts";
import { exactMatch } from "./exact_match.ts";
import { gsm8k } from "./gsm8k.ts";
import { length } from "./length.ts";

/** Every built-in reward by name. A new one takes its own file and one line here. */
export const REWARDS = {
  characters_in_place: charactersInPlace,
  exact_match: exactMatch,
  gsm8k,
  length,
};
