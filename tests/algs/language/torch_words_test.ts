import { deepStrictEqual, ok } from "node:assert/strict";
import { ON_NUMBERS, ON_TENSORS, SIGNS, TORCH_WORDS } from "../../../algs/language/torch_words.ts";

Deno.test("TORCH_WORDS: each word defines the function of its name and calls only words", () => {
  for (const [name, text] of Object.entries(TORCH_WORDS)) {
    ok(text.startsWith(`def ${name}(`), name);
    const body = text.slice(text.indexOf("\n"));
    const called = [...body.matchAll(/(?<![.\w])([a-z_]+)\(/g)].map(([, word]) => word!);
    deepStrictEqual(called.filter((word) => !(word in TORCH_WORDS)), [], name);
  }
});

Deno.test("what is printed on tensors is printed on numbers too, and no operator twice", () => {
  deepStrictEqual(Object.keys(ON_TENSORS).filter((name) => !(name in ON_NUMBERS)), []);
  deepStrictEqual(Object.keys(SIGNS).filter((name) => name in ON_NUMBERS), []);
});
