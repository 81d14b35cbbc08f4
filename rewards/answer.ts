/** What a completion answers, as the reward that grades it reads it: what a majority votes on. */
import { isImported, type RewardConfig } from "./config.ts";
import { REWARDS } from "./table.ts";

/** Reads the answer of a completion; null: it gives none. */
type AnswerReader = (completion: string) => string | null;

/** How a reward reads answers; null: it does not say, as no grader in a process does. */
export function answerReader(reward: RewardConfig): AnswerReader | null {
  if (isImported(reward) || reward.name === "reward_model") {
    return null;
  }
  const { name, weight: _, label: __, when: ___, ...own } = reward;
  const { answer } = REWARDS[name] as {
    answer?(completion: string, config: unknown): string | null;
  };
  return answer ? (completion) => answer(completion, own) : null;
}
