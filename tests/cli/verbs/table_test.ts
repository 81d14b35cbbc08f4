import { deepStrictEqual } from "node:assert/strict";
import { GROUPS, VERBS } from "../../../cli/verbs/table.ts";

/** Paths of the files below, without their ending. */
function filesBelow(folder: URL, within = ""): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) =>
    isDirectory
      ? filesBelow(new URL(`${name}/`, folder), `${within}${name}/`)
      : [`${within}${name.replace(/\.ts$/, "")}`]
  );
}

Deno.test("VERBS has every file of its folder once; one of two words is in a folder", () => {
  const files = filesBelow(new URL("../../../cli/verbs/", import.meta.url));
  const names = VERBS.map(({ name }) => name.replace(" ", "/").replaceAll("-", "_"));
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
