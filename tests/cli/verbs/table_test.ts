import { deepStrictEqual } from "node:assert/strict";
import { GROUPS, VERBS } from "../../../cli/verbs/table.ts";

Deno.test("VERBS has every file of its folder once", () => {
  const folder = new URL("../../../cli/verbs/", import.meta.url);
  const files = [...Deno.readDirSync(folder)].map(({ name }) => name.replace(/\.ts$/, ""));
  const names = VERBS.map(({ name }) => name.replaceAll(/[ -]/g, "_"));
  deepStrictEqual(names.toSorted(), files.filter((name) => name !== "table").toSorted());
});

Deno.test("GROUPS has the first word of each verb of two words, and no verb has it alone", () => {
  const words = VERBS.map(({ name }) => name.split(" "));
  const firsts = new Set(words.filter(({ length }) => length === 2).map(([first]) => first!));
  deepStrictEqual([...firsts].sort(), Object.keys(GROUPS).sort());
  deepStrictEqual(words.filter(({ length }) => length > 2), []);
  deepStrictEqual(VERBS.filter(({ name }) => name in GROUPS), []);
});

Deno.test("an option's letter means one thing to a verb", () => {
  for (const { name, options } of VERBS) {
    const letters = Object.values(options).flatMap(({ short }) => short ?? []);
    deepStrictEqual(letters, [...new Set(letters)], name);
  }
});
