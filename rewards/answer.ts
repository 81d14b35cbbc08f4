/** What a completion answers, as the reward that grades it reads it: what a majority votes on. */
import { declared, type RewardConfig } from "./entries/config.ts";

/** Reads the answer of a completion; null: it gives none. */
type AnswerReader = (completion: string) => string | null;

/**
 * How a reward reads answers, of which an empty one is none; null: it does not say, as no grader in
 * a process does.
 */
export function answerReader(config: RewardConfig): AnswerReader | null {
  const { reward, settings } = declared(config);
  if (!reward.answer) return null;
  return (completion) => {
    const answer = reward.answer!(completion, settings);
    return answer === null || answer.trim() === "" ? null : answer;
  };
}
