import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import {
  asCompletion,
  fieldsOf,
  kind,
  read,
  readChat,
  readCompletion,
  readPrompt,
} from "../../data/row_fields.ts";

const message = (role: string, content: string) => ({ role, content });

Deno.test("read() reads a nested field, but first a field of that very name", () => {
  strictEqual(read({ a: { b: 1 } }, "a.b"), 1);
  strictEqual(read({ "a.b": 2, a: { b: 1 } }, "a.b"), 2);
  strictEqual(read({ a: null }, "a.b"), undefined);
});

Deno.test("readPrompt() takes text and chats, and refuses an empty one", () => {
  strictEqual(readPrompt("prompt", "1+1"), "1+1");
  throws(() => readPrompt("prompt", ""), { field: "prompt", message: "the prompt is empty" });
  throws(() => readPrompt("prompt", []), { message: "the list of messages is empty" });
  throws(() => readPrompt("prompt", 3), {
    message: "expected text or a list of { role, content }, got number 3",
  });
});

Deno.test("readChat() drops other keys of a message, and names the part that is wrong", () => {
  const named = { ...message("user", "hi"), name: "ada", weight: 1 };
  deepStrictEqual(readChat("prompt", [named]), [message("user", "hi")]);
  throws(() => readChat("prompt", [message("user", "hi"), { role: "user" }]), {
    field: "prompt.1.content",
    message: "expected text, got nothing",
  });
  throws(() => readChat("prompt", ["hi"]), {
    field: "prompt.0",
    message: 'expected { role, content }, got the text "hi"',
  });
});

Deno.test("a completion of one assistant message is its text", () => {
  const answer = message("assistant", "2");
  strictEqual(readCompletion("completion", [answer]), "2");
  deepStrictEqual(asCompletion([message("user", "2")]), [message("user", "2")]);
  deepStrictEqual(asCompletion([answer, answer]), [answer, answer]);
});

Deno.test("kind() and fieldsOf() say what a row has", () => {
  deepStrictEqual([undefined, null, [], {}, true].map(kind), [
    "nothing",
    "null",
    "a list",
    "an object",
    "boolean true",
  ]);
  strictEqual(fieldsOf({ a: 1, b: 2 }), "'a', 'b'");
  strictEqual(fieldsOf({}), "no field");
});
