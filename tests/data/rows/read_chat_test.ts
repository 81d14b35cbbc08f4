import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import {
  asCompletion,
  readChat,
  readCompletion,
  readPrompt,
} from "../../../data/rows/read_chat.ts";

const message = (role: string, content: string) => ({ role, content });

Deno.test("readPrompt() takes text and chats, and refuses an empty one", () => {
  strictEqual(readPrompt("prompt", "1+1"), "1+1");
  throws(() => readPrompt("prompt", ""), { field: "prompt", message: "the prompt is empty" });
  throws(() => readPrompt("prompt", []), { message: "the list of messages is empty" });
  throws(() => readPrompt("prompt", 3), {
    message: "expected text or a list of { role, content }, got number 3",
  });
});

Deno.test("readChat() keeps all fields of a message but nulls, and names the part that is wrong", () => {
  const named = { ...message("user", "hi"), weight: 1, name: "ada" };
  const kept = [{ ...message("user", "hi"), more: '{"weight":1,"name":"ada"}' }];
  deepStrictEqual(readChat("prompt", [{ ...named, tool_calls: null, thinking: null }]), kept);
  deepStrictEqual(readChat("prompt", [{ ...named, tool_calls: [] }]), kept);
  deepStrictEqual(readChat("prompt", [{ ...message("user", "hi"), name: null }]), [
    message("user", "hi"),
  ]);
  throws(() => readChat("prompt", [message("user", "hi"), { role: "user" }]), {
    field: "prompt.1.content",
    message: "expected text, got nothing",
  });
  throws(() => readChat("prompt", ["hi"]), {
    field: "prompt.0",
    message: 'expected { role, content }, got the text "hi"',
  });
});

Deno.test("readChat() joins content parts that are all text, and names others", () => {
  const readUser = (content: unknown) => readChat("messages", [{ role: "user", content }]);
  for (const type of ["text", "input_text", "output_text"]) {
    deepStrictEqual(readUser([{ type, text: "a\n" }, { type: "text", text: "b", image: null }]), [
      message("user", "a\nb"),
    ]);
  }
  for (const other of [{ type: "image_url", image_url: { url: "x" } }, { type: "text" }, "b"]) {
    throws(() => readUser([{ type: "text", text: "a" }, other]), { field: "messages.0.content" });
  }
  throws(() => readUser([]), { field: "messages.0.content" });
});

Deno.test("a completion of one assistant message is its text", () => {
  const answer = message("assistant", "2");
  strictEqual(readCompletion("completion", [answer]), "2");
  deepStrictEqual(asCompletion([message("user", "2")]), [message("user", "2")]);
  deepStrictEqual(asCompletion([answer, answer]), [answer, answer]);
});

const CALL = { id: "c", type: "function", function: { name: "f", arguments: { a: 1, b: null } } };

Deno.test("readChat() takes the content null of a message that calls a tool, and only of such", () => {
  const [calling] = readChat("m", [{ role: "assistant", content: null, tool_calls: [CALL] }]);
  deepStrictEqual(calling, {
    role: "assistant",
    content: null,
    more: JSON.stringify({
      tool_calls: [{ ...CALL, function: { name: "f", arguments: { a: 1 } } }],
    }),
  });
  const refused = { field: "m.0.content", message: "expected text, got null" };
  throws(() => readChat("m", [{ role: "assistant", content: null, name: "x" }]), refused);
  throws(() => readChat("m", [{ role: "user", content: null, tool_calls: [CALL] }]), refused);
});

Deno.test("a completion with more than content stays a message", () => {
  const thought = { role: "assistant", content: "4", reasoning_content: "2 and 2" };
  deepStrictEqual(readCompletion("completion", [thought]), [
    { ...message("assistant", "4"), more: '{"reasoning_content":"2 and 2"}' },
  ]);
});

for (
  const [calls, field, message] of [
    ["call", "m.0.tool_calls", 'expected a list, got the text "call"'],
    [["call"], "m.0.tool_calls.0", 'expected { function }, got the text "call"'],
    [[{ function: {} }], "m.0.tool_calls.0.function.name", "expected text, got nothing"],
    [
      [{ function: { name: "f", arguments: "{a: 1}" } }],
      "m.0.tool_calls.0.function.arguments",
      'expected an object or its JSON text, got the text "{a: 1}"',
    ],
  ] as const
) {
  Deno.test(`readChat() refuses calls that no template can write: ${field}`, () => {
    const calling = { role: "assistant", content: "", tool_calls: calls };
    throws(() => readChat("m", [calling]), { field, message });
  });
}
