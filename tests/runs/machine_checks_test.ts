import { deepStrictEqual } from "node:assert/strict";
import { machineChecks } from "../../runs/mod.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

Deno.test("machineChecks() names a home that cannot be, as it lies in a file", async () => {
  const disk = (await machineChecks(`${ROOT}README.md/a/home`)).find(({ name }) =>
    name === "disk"
  )!;
  deepStrictEqual([disk.verdict, disk.says], [
    "FAIL",
    `the home cannot be inside '${ROOT}README.md', which is a file`,
  ]);
});

Deno.test("machineChecks() says why a named store does not answer", async () => {
  const named = async (store?: string) =>
    (await machineChecks("nowhere", { store })).filter(({ name }) => name === "store").map((
      { verdict },
    ) => verdict);
  deepStrictEqual(await named(), []);
  deepStrictEqual(await named("postgres://nobody@127.0.0.1:1/none"), ["FAIL"]);
});
