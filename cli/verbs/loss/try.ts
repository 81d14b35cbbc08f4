import { resolve } from "node:path";
import { parsePythonAlgorithm } from "../../../algs/mod.ts";
import { InvalidInputError } from "../../../engine/mod.ts";
import { findRun, type Home, tryAlgorithm } from "../../../runs/mod.ts";
import { choiceOf, fileChoiceOf } from "../../algorithm_choice.ts";
import { tell } from "../../display/output.ts";
import { defineVerb } from "../../verb.ts";
import { ARGUMENTS } from "../../arguments.ts";
import { json, required, text, wholeNumber } from "../../options.ts";

/**
 * `loss try FILE|NAME --batch RUN/ROUND [a=b ...]`: credit and loss on a recorded batch, in one
 * process.
 */
export const lossTryVerb = defineVerb({
  name: "loss try",
  about: "run an algorithm's credit and loss on a recorded batch",
  arguments: {
    "<algorithm>": ARGUMENTS.algorithm,
    "[settings...]": ARGUMENTS.settings,
  },
  options: {
    json,
    batch: required("<run/round>", "the run and round whose batch to use"),
    model: text("<dir>", "take log-probabilities from this model instead of the batch"),
  },
  action: ({ args: { algorithm, settings }, flags, globals }) =>
    globals.withHome((home) => tryLoss(home, { name: algorithm, settings }, flags)),
});

type LossTryOptions = { batch: string; model?: string; json?: boolean };

/** Returns the exit code. */
async function tryLoss(
  home: Home,
  { name, settings }: { name: string; settings: readonly string[] },
  { batch, model, json = false }: LossTryOptions,
): Promise<number> {
  const at = batch.lastIndexOf("/");
  if (at < 1) {
    throw new InvalidInputError(
      `Cannot find batch '${batch}': expected RUN/ROUND, as in my_run/3`,
      { batch },
    );
  }
  const head = await findRun(home, batch.slice(0, at).replace(/\/round$/, ""));
  const round = wholeNumber(batch.slice(at + 1), { name: "--batch RUN/ROUND", least: 1 });
  const algorithm = parsePythonAlgorithm(name) === null
    ? choiceOf(name, settings, "try")
    : await fileChoiceOf(resolve(name), settings, "try");
  return await tryAlgorithm(home, head, {
    round,
    algorithm,
    json,
    model: model === undefined ? null : resolve(model),
    onSetup: ({ text }) => tell(text),
  });
}
