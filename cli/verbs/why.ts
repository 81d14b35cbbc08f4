import type { Start, StartReason } from "../../engine/mod.ts";
import { findRun, type Home, type Why, whyEntry } from "../../runs/mod.ts";
import { completed, print, printJson, size } from "../display/output.ts";
import { defineVerb } from "../verb.ts";
import { ARGUMENTS } from "../arguments.ts";
import { json } from "../options.ts";

/** `why RUN KEY`: an entry of the journal, each of its starts, and its result. */
export const whyVerb = defineVerb({
  name: "why",
  about: "explain a journal entry and each time it started",
  arguments: {
    "<run>": ARGUMENTS.run,
    "<key>": "a journal key, such as 'round/3/train_policy'",
  },
  options: { json },
  async action({ args: { run, key }, flags, globals }) {
    await globals.withHome(async (home) => {
      const why = await whyEntry(home.store, await findRun(home, run), key);
      if (flags.json) printJson(why);
      else print(describe(why, home));
    });
  },
});

const REASONS: Record<StartReason, string> = {
  ready: "its inputs were ready",
  called: "the stage above called it",
  failure: "the previous start failed",
  resume: "a resume allowed new attempts after it had failed",
  other_engine: "the previous engine ended, or lost the run, before this was done",
  input_changed: "its input changed",
  asked_again: "its record was dropped, and it was requested again",
};

function describe(why: Why, home: Home): string {
  const lines: [string, string][] = [
    ["entry", `${why.key} of run ${why.run}`],
    [
      "stage",
      why.stage === null ? "a step: only its result is recorded" : `${why.stage} on ${why.runs_on}`,
    ],
    ["state", why.state.replace("_", " ")],
    ...(why.waited_for
      ? [
        ["waited for", `${why.waited_for.key}, ready at ${time(why.waited_for.at_ms)}`] as [
          string,
          string,
        ],
      ]
      : []),
    ...why.starts.flatMap(startLines),
    ...(why.failure
      ? [["failed", completed(why.failure.message, home, why.run)] as [string, string]]
      : []),
  ];
  if (why.result) {
    const { at_ms, epoch, ms, artifacts } = why.result;
    lines.push(["result", `${time(at_ms)} epoch ${epoch}${ms === null ? "" : `, after ${ms} ms`}`]);
    for (const { sha256, bytes } of artifacts) {
      lines.push(["artifact", `${sha256.slice(0, 12)} ${size(bytes)}`]);
    }
  }
  if (why.children > 0) lines.push(["below it", `${why.children} entries`]);
  return lines.map(([name, text]) => `${name.padEnd(10)} ${text}`).join("\n");
}

function startLines(
  { attempt, epoch, at_ms, reason, error, changed, recoveries }: Start,
): [string, string][] {
  return [
    [`start ${attempt}`, `${time(at_ms)} epoch ${epoch}: ${REASONS[reason]}`],
    ...(error
      ? [["", `${error.cause_kind}: ${error.message.split("\n")[0]}`] as [string, string]]
      : []),
    ...changed.flatMap(({ field, before, after }): [string, string][] => [
      ["", `- ${field}: ${before ?? "(none)"}`],
      ["", `+ ${field}: ${after ?? "(none)"}`],
    ]),
    ...recoveries.map(({ cause, action, batches_redone, seconds }): [string, string] => [
      "recovery",
      `${cause}: ${action}, ${batches_redone} batches redone in ${Number(seconds).toFixed(1)} s`,
    ]),
  ];
}

function time(at_ms: number): string {
  return new Date(at_ms).toISOString().slice(11, 23);
}
