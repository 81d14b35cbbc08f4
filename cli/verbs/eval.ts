import type { LoadedConfig } from "../../configs/mod.ts";
import { InvalidInputError } from "../../engine/mod.ts";
import { type ComparedEvaluations, compareEvaluations } from "../../runs/mod.ts";
import { flag, json } from "../options.ts";
import { fixed, print, printJson, signed, table } from "../display/output.ts";
import { startFile, STARTS } from "../start_run.ts";
import { defineVerb } from "../verb.ts";

/**
 * `eval CONFIG`: what `run` does, for configurations of the evaluate flow alone. `eval --compare A
 * B`: recorded evaluations side by side.
 */
export const evalVerb = defineVerb({
  name: "eval",
  about: "evaluate a model with the evaluate flow, or compare evaluations",
  ...STARTS,
  options: {
    ...STARTS.options,
    compare: flag("compare recorded evaluations, each RUN or RUN/EVALUATION, with the first"),
    json,
  },
  action: ({ args, flags, globals }) => {
    if (!flags.compare) return startFile({ args, flags, globals }, checkEvaluates);
    return globals.withHome(async (home) => {
      const compared = await compareEvaluations(home, [args.config, ...args.overrides]);
      if (flags.json) printJson(compared);
      else print(compared.map(comparedText).join("\n\n"));
    });
  },
});

function checkEvaluates({ file, config: { flow } }: LoadedConfig): void {
  if (flow === "evaluate") return;
  throw new InvalidInputError(
    `Cannot evaluate with ${file} because its flow is '${flow}': set flow: evaluate, or use 'run'`,
    { flow },
  );
}

const HEADER = ["measure", "problems", "a", "b", "b - a", "95 %", "better", "worse", "equal"];

function comparedText({ a, b, only_a, only_b, measures }: ComparedEvaluations): string {
  const rows = measures.map((one) => [
    one.measure,
    String(one.problems),
    fixed(one.a, 3),
    fixed(one.b, 3),
    signed(one.difference, 3),
    one.interval ? one.interval.map((end) => signed(end, 3)).join(" to ") : "-",
    ...[one.better, one.worse, one.equal].map(String),
  ]);
  const others = only_a + only_b === 0
    ? []
    : [`only in a: ${only_a}, only in b: ${only_b} problems`];
  return [`a  ${a}`, `b  ${b}`, ...others, table(HEADER, rows)].join("\n");
}
