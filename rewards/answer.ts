/** What a completion answers, as the reward that grades it reads it: what a majority votes on. */
import { declared, type RewardConfig } from "./config.ts";

/** Reads the answer of a completion; null: it gives none. */
type AnswerReader = (completion: string) => string | null;

/** How a reward reads answers; null: it does not say, as no grader in a process does. */
export function answerReader(config: RewardConfig): AnswerReader | null {
  const { reward, own } = declared(config);
  return reward.answer ? (completion) => reward.answer!(completion, own) : null;
}
