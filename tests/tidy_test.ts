/** The habits of the house that are rules: the tree has no exception. `deno task tidy` counts others. */
import { deepStrictEqual } from "node:assert/strict";
import { RULES } from "./tidy/measures.ts";
import { readRepository } from "./tidy/repository.ts";

const tree = await readRepository();

for (const [name, findings] of Object.entries(RULES)) {
  Deno.test(`the repository has no ${name.replaceAll("_", " ")}`, () => {
    deepStrictEqual(findings(tree), []);
  });
}
