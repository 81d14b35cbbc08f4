import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { DataError } from "../../data/mod.ts";

Deno.test("DataError's message begins with the place, as far as it is known", () => {
  const messageOf = (place: { line?: number; field?: string }) =>
    new DataError("is empty", { file: "a.jsonl", ...place }).message;
  strictEqual(messageOf({}), "a.jsonl: is empty");
  strictEqual(messageOf({ line: 3 }), "a.jsonl:3: is empty");
  strictEqual(messageOf({ line: 3, field: "prompt" }), "a.jsonl:3 prompt: is empty");
});

Deno.test("DataError is never retried, and its JSON has the place", () => {
  const error = new DataError("is empty", { file: "a.jsonl", line: 3 });
  deepStrictEqual(error.toJSON(), {
    code: "bad_data",
    retryable: false,
    message: "a.jsonl:3: is empty",
    facts: { file: "a.jsonl", line: 3 },
  });
});
