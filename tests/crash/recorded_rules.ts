import type { JournalRow, RoundRecord, RunHead } from "../../engine/mod.ts";
import { checkLedger } from "../../flows/ledger.ts";

/**
 * What must hold of any run that has ended, however often it was killed: one sentence for each rule
 * that does not.
 */
export function brokenRules(head: RunHead, rows: JournalRow[]): string[] {
  return [
    ...staleWrites(head, rows),
    ...startedTwice(rows),
    ...duplicateVersions(rows),
    ...unsettledDraws(rows),
  ];
}

/**
 * Epochs may only rise: a row of a lower epoch after one of a higher is a write of an owner that
 * was superseded.
 */
function staleWrites(head: RunHead, rows: JournalRow[]): string[] {
  const stale = rows.filter((row, i) => i > 0 && row.epoch < rows[i - 1]!.epoch);
  const ahead = rows.filter((row) => row.epoch > head.epoch);
  return [
    ...stale.map(({ seq, epoch }) =>
      `row ${seq} was written by epoch ${epoch} after a later epoch`
    ),
    ...ahead.map(({ seq, epoch }) => `row ${seq} is of epoch ${epoch}, the run's is ${head.epoch}`),
  ];
}

/** A completed stage has one result, and nothing of it begins after that. */
function startedTwice(rows: JournalRow[]): string[] {
  const completed = new Set<string>();
  const broken: string[] = [];
  for (const { kind, key, seq } of rows) {
    if (kind === "intent" && completed.has(key)) {
      broken.push(`row ${seq} starts ${key} again after its result`);
    }
    if (kind !== "result") continue;
    if (completed.has(key)) broken.push(`row ${seq} is a second result of ${key}`);
    completed.add(key);
  }
  return broken;
}

/** Redoing a batch makes a version again and records nothing: each is noted once. */
function duplicateVersions(rows: JournalRow[]): string[] {
  const versions = rows.filter(({ kind }) => kind === "note/version").map(({ key }) => key);
  return versions.filter((version, i) => versions.indexOf(version) < i)
    .map((version) => `version ${version.slice(0, 12)} is recorded twice`);
}

/** Every draw is in one state when a round closes, or handed on to the next. */
function unsettledDraws(rows: JournalRow[]): string[] {
  return rows.filter(({ kind }) => kind === "round").flatMap(({ key, value }) => {
    const { total, carried, round } = JSON.parse(value) as RoundRecord;
    return checkLedger({ tally: total, carried, round }) === null
      ? []
      : [`${key} closed with draws in no state`];
  });
}

/** Which entries completed: the same ones as in a run to which nothing happened. */
export function completedKeys(rows: JournalRow[]): string[] {
  return rows.filter(({ kind }) => kind === "result").map(({ key }) => key).sort();
}
