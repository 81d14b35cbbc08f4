/** The habits of the house that are rules, some to a limit. `deno task tidy` counts others. */
import { deepStrictEqual, ok } from "node:assert/strict";
import { COUNTS, LIMITS, RULES } from "./tidy/measures.ts";
import { readRepository } from "./tidy/repository.ts";

const tree = await readRepository();

for (const [name, findings] of Object.entries(RULES)) {
  Deno.test(`the repository has no ${name.replaceAll("_", " ")}`, () => {
    deepStrictEqual(findings(tree), []);
  });
}

for (const [name, most] of Object.entries(LIMITS)) {
  Deno.test(`the repository has at most ${most} ${name.replaceAll("_", " ")}`, () => {
    const found = COUNTS[name]!(tree);
    ok(found.length <= most, `there are ${found.length}:\n${found.join("\n")}`);
  });
}
