import { InvalidInputError } from "../errors.ts";
import type { RunHead } from "./store.ts";

/**
 * What the rows of a journal mean. Raised if another Holdfast would misread what this one writes,
 * or this one what others wrote.
 */
export const JOURNAL_VERSION = 3;

type Versioned = Pick<RunHead, "id" | "journal">;

/** @throws {InvalidInputError} If a Holdfast with other journals has written the run's. */
export function checkJournal<Head extends Versioned>(head: Head): Head {
  const { id, journal } = head;
  if (journal === JOURNAL_VERSION) return head;
  throw new InvalidInputError(
    `Cannot read run '${id}' because its journal has version ${journal}, and this Holdfast has ` +
      `version ${JOURNAL_VERSION}. Fix: use the ${
        journal > JOURNAL_VERSION ? "newer" : "older"
      } Holdfast that wrote it`,
    { run: id, journal, known: JOURNAL_VERSION },
  );
}
