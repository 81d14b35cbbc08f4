/** What happens if a replay requests something that differs from the journal. */
import { ReplayDriftError } from "../errors.ts";
import type { Frame } from "./frame.ts";
import { fieldTexts, partsOf } from "./input_record.ts";
import type { StageTask } from "./task.ts";
import type { Journal } from "../journal/journal.ts";
import { addTally, type Entry, recordedIntent } from "../journal/tree.ts";
import { type Configs, isOfEarlierSettings } from "./recorded_input.ts";

type Replaying = { journal: Journal; configs?: Configs };

/**
 * The recorded input has a different hash: if not only settings differ that a resume changed, stop,
 * rerun or keep the record, as the stage's policy says.
 */
export function checkInput(
  task: StageTask & { input_hash: string },
  { journal, configs }: Replaying,
): void {
  const { entry, stage } = task;
  if (stage.replay === "accept" || (configs && isOfEarlierSettings(task, configs))) return;
  if (stage.replay === "rerun" || isReopened(task, journal)) return forget(task);
  const difference = inputDifference(task);
  throw new ReplayDriftError(
    `Cannot replay '${entry.key}' because its input is not the recorded one:\n${
      difference.join("\n")
    }\n` +
      "Undo the change, start a new run, or set the stage's replay to 'rerun' or 'accept'.",
    { key: entry.key, difference },
  );
}

/**
 * Whether a changed input is not drift: the entry was given up because of the user's code or data,
 * or its own inputs may be new.
 */
function isReopened({ entry, parent }: StageTask, journal: Journal): boolean {
  return entry.was_given_up ||
    (isBefore(entry, journal) && (entry.may_change || parent !== undefined));
}

/** Recorded before the newest resume that opened new budgets. */
function isBefore({ recorded_seq }: Entry, { reopened_seq }: Journal): boolean {
  return recorded_seq <= reopened_seq;
}

/**
 * Whether the recorded result is a failure that no stage has accepted. The body that requested a
 * child has not accepted it until the body is done.
 */
export async function isTriedAgain(
  { entry, stage, parent }: StageTask,
  journal: Journal,
): Promise<boolean> {
  if (parent === undefined || entry.result === undefined || !stage.failed) return entry.tried_again;
  return isBefore(entry, journal) && stage.failed(await journal.output(entry.key, entry.result));
}

/** A body that ran again must request every recorded child again. */
export function checkChildren(
  task: StageTask,
  { frame, journal }: { frame: Frame; journal: Journal },
): void {
  const { entry, stage } = task;
  if (entry.children.size <= frame.requested.size || stage.replay === "accept") return;
  const unasked = [...entry.children].filter(([name, child]) =>
    !frame.requested.has(name) && child.result !== undefined
  );
  if (unasked.length === 0) return;
  if (stage.replay === "rerun" || unasked.every(([, child]) => isBefore(child, journal))) {
    for (const [name, child] of unasked) {
      task.scope.addTally(negative(child.tally()));
      entry.drop(name);
    }
    return;
  }
  const difference = unasked.map(([, child]) => `- ${child.key} (recorded, not requested)`);
  throw new ReplayDriftError(
    `Cannot replay '${entry.key}' because its body no longer makes the recorded requests:\n${
      difference.join("\n")
    }`,
    { key: entry.key, difference },
  );
}

/** Drops its record, so that it runs again. */
export function forget({ entry, scope }: StageTask): void {
  scope.addTally(negative(entry.tally()));
  entry.forget();
}

function negative(counts: Record<string, number>): Record<string, number> {
  return addTally(
    {},
    Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, -count])),
  );
}

function inputDifference(
  { entry, stage, input }: { entry: Entry; stage: StageTask["stage"]; input: unknown },
): string[] {
  if (entry.intent === undefined) return ["(the recorded input is not known)"];
  const before = recordedIntent({ kind: "intent", key: entry.key, value: entry.intent });
  const lines: string[] = [];
  if (before.stage !== stage.name || before.version !== stage.version) {
    lines.push(
      `- stage ${before.stage}@${before.version}`,
      `+ stage ${stage.name}@${stage.version}`,
    );
  }
  const old = before.parts ? before.parts : fieldTexts(before.input);
  const now = before.parts ? partsOf(input) : fieldTexts(input);
  for (const field of new Set([...Object.keys(old), ...Object.keys(now)])) {
    if (old[field] === now[field]) continue;
    if (old[field] !== undefined) lines.push(`- ${field}: ${shown(old[field], before.parts)}`);
    if (now[field] !== undefined) lines.push(`+ ${field}: ${shown(now[field], before.parts)}`);
  }
  return lines;
}

function shown(text: string, parts: Record<string, string> | undefined): string {
  return parts
    ? `sha256 ${text.slice(0, 12)}`
    : text.length > 200
    ? `${text.slice(0, 200)}…`
    : text;
}
