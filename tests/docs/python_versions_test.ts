import { deepStrictEqual, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { PYTHON_MINOR_MAX, PYTHON_MINOR_MIN } from "../../workers/mod.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

for (const page of ["README.md", "docs/getting_started.md", "docs/environments.md", ".ci/run"]) {
  Deno.test(`${page} names the Pythons that the workers run on`, async () => {
    const text = await Deno.readTextFile(`${ROOT}${page}`);
    const named = [...text.matchAll(/Python (3\.\d+) (to 3\.\d+|or newer)/g)].map((match) =>
      match[0]
    );
    ok(named.length > 0);
    const right = `Python 3.${PYTHON_MINOR_MIN} to 3.${PYTHON_MINOR_MAX}`;
    deepStrictEqual(named.filter((text) => text !== right), []);
  });
}

Deno.test("CI runs on the oldest Python that the README names", async () => {
  const text = await Deno.readTextFile(`${ROOT}.ci/run`);
  deepStrictEqual([...text.matchAll(/HOLDFAST_PYTHON=(\S+)/g)].map(([, name]) => name), [
    `python3.${PYTHON_MINOR_MIN}`,
  ]);
});
