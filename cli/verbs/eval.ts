import type { LoadedConfig } from "../../configs/mod.ts";
import { InvalidInputError } from "../../engine/mod.ts";
import { startFile, STARTS } from "../start_run.ts";
import { defineVerb } from "../verb.ts";

/** `eval CONFIG`: what `run` does, for configurations of the evaluate flow alone. */
export const evalVerb = defineVerb({
  name: "eval",
  about: "evaluate a model with the evaluate flow",
  ...STARTS,
  action: (call) => startFile(call, checkEvaluates),
});

function checkEvaluates({ file, config: { flow } }: LoadedConfig): void {
  if (flow === "evaluate") return;
  throw new InvalidInputError(
    `Cannot evaluate with ${file} because its flow is '${flow}': set flow: evaluate, or use 'run'`,
    { flow },
  );
}
