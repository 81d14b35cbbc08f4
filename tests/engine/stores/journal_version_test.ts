import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { checkJournal, InvalidInputError, JOURNAL_VERSION } from "../../../engine/mod.ts";

Deno.test("checkJournal() answers the head of this Holdfast's version", () => {
  const head = { id: "a", journal: JOURNAL_VERSION };
  strictEqual(checkJournal(head), head);
});

Deno.test("checkJournal() refuses another version, and says which Holdfast to use", () => {
  for (const [journal, which] of [[JOURNAL_VERSION - 1, "older"], [JOURNAL_VERSION + 1, "newer"]]) {
    throws(() => checkJournal({ id: "a", journal: journal as number }), (error) => {
      const { facts, message } = error as InvalidInputError;
      deepStrictEqual(facts, { run: "a", journal, known: JOURNAL_VERSION });
      strictEqual(
        message,
        `Cannot read run 'a' because its journal has version ${journal}, and this Holdfast has ` +
          `version ${JOURNAL_VERSION}. Fix: use the ${which} Holdfast that wrote it`,
      );
      return error instanceof InvalidInputError;
    });
  }
});
