import { z } from "zod";
import { BadDataError, InvalidInputError } from "./errors.ts";
import type { RunHead } from "./stores/store.ts";

/**
 * A run's id. Directories are named by it, so it is a plain file name: no `/`, no `..`, never
 * empty.
 */
export const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
export const RunId = z.string().regex(RUN_ID);

const RULE = "letters, digits, '.', '_' and '-', the first a letter or digit, at most 128";
/** Characters of the random part of an id that we make. */
const RANDOM_LENGTH = 8;
const NAME_MAX = 128 - RANDOM_LENGTH - 1;

export function isRunId(id: string): boolean {
  return RUN_ID.test(id);
}

/**
 * The head of a run as a store has it.
 * @throws {BadDataError} If no Holdfast has recorded it: directories are named by a run's id.
 */
export function checkedHead(head: RunHead): RunHead {
  if (isRunId(head.id)) return head;
  throw new BadDataError(
    `Cannot read run '${shown(head.id)}' because an id is ${RULE}: another ` +
      "program has written it into the store. Fix: remove its row from the table 'runs', or use another store",
    { run: head.id },
  );
}

/** @throws {InvalidInputError} If the id cannot be a run's. */
export function checkRunId(id: string): string {
  if (isRunId(id)) return id;
  throw new InvalidInputError(
    `Cannot use '${shown(id)}' as a run's id: an id is ${RULE}. Fix: choose another --id`,
    {
      run: id,
    },
  );
}

/** A new id that starts with any name. */
export function newRunId(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "").slice(
    0,
    NAME_MAX,
  );
  return `${plain || "run"}-${crypto.randomUUID().slice(0, RANDOM_LENGTH)}`;
}

/** An id as a message prints it: it may contain anything. */
export function shown(id: string): string {
  const text = JSON.stringify(id).slice(1, -1);
  return text.length > 80 ? `${text.slice(0, 80)}...` : text;
}
