import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { checkJournal, InvalidInputError, JOURNAL_VERSION } from "../../engine/mod.ts";

Deno.test("checkJournal() answers the head of every version up to this Holdfast's", () => {
  for (let journal = 1; journal <= JOURNAL_VERSION; journal++) {
    const head = { id: "a", journal };
    strictEqual(checkJournal(head), head);
  }
});

Deno.test("checkJournal() refuses a newer version, and says which one is known", () => {
  const journal = JOURNAL_VERSION + 1;
  throws(() => checkJournal({ id: "a", journal }), (error) => {
    const { facts, message } = error as InvalidInputError;
    deepStrictEqual(facts, { run: "a", journal, known: JOURNAL_VERSION });
    strictEqual(
      message,
      `Cannot read run 'a' because its journal has version ${journal} and this Holdfast knows ` +
        `up to ${JOURNAL_VERSION}. Fix: use the newer Holdfast that wrote it`,
    );
    return error instanceof InvalidInputError;
  });
});
