import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { chatOf, chatSettings } from "../../data/chat.ts";

const Settings = z.strictObject(chatSettings);

Deno.test("chatOf() records how a chat is rendered if its template ends the turns", () => {
  const template_arguments = { enable_thinking: false };
  deepStrictEqual(chatOf({ turn_end: "template", template_arguments }), {
    chat: { template_arguments },
  });
  deepStrictEqual(chatOf(Settings.parse({})), { chat: { template_arguments: {} } });
});

Deno.test("chatOf() records nothing if the end-of-sequence token ends turns", () => {
  deepStrictEqual([chatOf(), chatOf({}), chatOf({ turn_end: "eos_token" })], [{}, {}, {}]);
});

Deno.test("template_arguments refuses what the worker passes itself", () => {
  const { error } = Settings.safeParse({ template_arguments: { tokenize: false } });
  match(error!.message, /comes from the worker that renders the template; leave it out/);
  strictEqual(Settings.safeParse({ template_arguments: { other: 1 } }).success, true);
});
