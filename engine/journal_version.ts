import { InvalidInputError } from "./errors.ts";
import type { RunHead } from "./store.ts";

/**
 * What the rows of a journal mean. Raised if an older Holdfast would misread what this one writes;
 * a run has the version of the newest engine that claimed it. 1: runs recorded before versions had
 * a number. 2: a resume may change settings (`note/settings`) and redo results that report
 * failures.
 */
export const JOURNAL_VERSION = 2;

type Versioned = Pick<RunHead, "id" | "journal">;

/** @throws {InvalidInputError} If a newer Holdfast has written the run's journal. */
export function checkJournal<Head extends Versioned>(head: Head): Head {
  const { id, journal } = head;
  if (journal <= JOURNAL_VERSION) return head;
  throw new InvalidInputError(
    `Cannot read run '${id}' because its journal has version ${journal} and this Holdfast ` +
      `knows up to ${JOURNAL_VERSION}. ` +
      "Fix: use the newer Holdfast that wrote it",
    { run: id, journal, known: JOURNAL_VERSION },
  );
}
