import { parseOverride } from "../configs/mod.ts";
import { InvalidInputError } from "../engine/mod.ts";
import { type AskedReplan, REPLAN_FIELDS, type ReplanField } from "../workers/mod.ts";

/**
 * The `a.b=c` of `resume RUN a.b=c`: numerics to go on with.
 * @throws {InvalidInputError} For any other setting: what has been recorded was made with it.
 */
export function resumeOverrides(texts: readonly string[]): AskedReplan {
  const asked: AskedReplan = {};
  for (const text of texts) {
    const override = parseOverride(text);
    if ("message" in override) throw new InvalidInputError(`Cannot resume with '${text}' as ${override.message}`);
    const field = REPLAN_FIELDS.find((name) => name === override.path.join("."));
    if (field === undefined) {
      throw new InvalidInputError(
        `Cannot resume with '${text}' as a run that has begun may only go on with another ${
          REPLAN_FIELDS.join(", ")
        }: ` +
          "for other settings fork it from a round",
        { override: text },
      );
    }
    asked[field as ReplanField] = override.value;
  }
  return asked;
}
