import { deepStrictEqual } from "node:assert/strict";
import { machineChecks } from "../../../runs/mod.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

Deno.test("machineChecks() names a home that cannot be, as it lies in a file, and no store", async () => {
  const checks = await machineChecks(`${ROOT}README.md/a/home`);
  const of = (name: string) =>
    checks.filter((check) => check.name === name).map(({ verdict, says }) => [verdict, says]);
  deepStrictEqual(of("disk"), [
    ["FAIL", `the home cannot be inside '${ROOT}README.md', which is a file`],
  ]);
  deepStrictEqual(of("store"), []);
});

Deno.test("machineChecks() says that a named store does not answer", async () => {
  const checks = await machineChecks("nowhere", { store: "postgres://nobody@127.0.0.1:1/none" });
  deepStrictEqual(
    checks.filter(({ name }) => name === "store").map(({ verdict }) => verdict),
    ["FAIL"],
  );
});
