import { expressionsOf, expressionText, masksTruncated, torchModule } from "../../../algs/mod.ts";
import { InvalidInputError } from "../../../engine/mod.ts";
import { choiceOf } from "../../algorithm_choice.ts";
import { print, printJson } from "../../display/output.ts";
import { defineVerb } from "../../verb.ts";
import { ARGUMENTS } from "../../arguments.ts";
import { flag, json } from "../../options.ts";

/**
 * `loss show NAME [a=b ...]`: the loss of an algorithm with these settings, as the trainer computes
 * it.
 */
export const lossShowVerb = defineVerb({
  name: "loss show",
  about: "print the loss of an algorithm, as the trainer computes it",
  arguments: {
    "<algorithm>": ARGUMENTS.algorithm,
    "[settings...]": ARGUMENTS.settings,
  },
  options: {
    json,
    torch: flag("as a standalone Python module"),
    value: flag("the loss of its value model"),
  },
  action: ({ args, flags }) => showLoss(args.algorithm, args.settings, flags),
});

type LossShowOptions = { torch?: boolean; json?: boolean; value?: boolean };

const MASKED =
  "mask_truncated: completions cut by the token limit are left out of this step: out of " +
  "every sum and every count";
const MASKED_NOT =
  "mask_truncated: the value model also learns from completions cut by the token limit";

/**
 * Prints a loss in the loss language, or with `torch` as a standalone Python module. `value`: the
 * loss of the value model.
 */
function showLoss(
  name: string,
  overrides: readonly string[],
  { torch, json, value }: LossShowOptions,
): void {
  const choice = choiceOf(name, overrides);
  const { loss, value_loss } = expressionsOf(choice);
  const expression = value ? value_loss : loss;
  if (expression === undefined) {
    throw new InvalidInputError(`Cannot show a value loss of '${name}' because it has none`);
  }
  const text = torch
    ? torchModule(expression, { title: value ? `${name}, value model` : name })
    : null;
  if (json) {
    return printJson({ algorithm: choice, ...(text === null ? { expression } : { torch: text }) });
  }
  const comment = torch ? "#" : "//";
  print(`${comment} ${JSON.stringify(choice)}`);
  if (masksTruncated(choice)) print(`${comment} ${value ? MASKED_NOT : MASKED}`);
  print((text ?? expressionText(expression)).trimEnd());
}
