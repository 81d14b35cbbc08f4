import { deepStrictEqual } from "node:assert/strict";
import { machineChecks } from "../../../runs/mod.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

/** No time for the environments of this machine, however many it has: others test their checks. */
function withoutEnvironments(): Disposable {
  const before = Deno.env.get("HOLDFAST_ENV_DIR");
  Deno.env.set("HOLDFAST_ENV_DIR", Deno.makeTempDirSync({ prefix: "machine_checks_test_" }));
  const restore = () =>
    before === undefined
      ? Deno.env.delete("HOLDFAST_ENV_DIR")
      : Deno.env.set("HOLDFAST_ENV_DIR", before);
  return { [Symbol.dispose]: restore };
}

Deno.test("machineChecks() names a home that cannot be, as it lies in a file, and no store", async () => {
  using _ = withoutEnvironments();
  const checks = await machineChecks(`${ROOT}README.md/a/home`);
  const of = (name: string) =>
    checks.filter((check) => check.name === name).map(({ verdict, says }) => [verdict, says]);
  deepStrictEqual(of("disk"), [
    ["FAIL", `the home cannot be inside '${ROOT}README.md', which is a file`],
  ]);
  deepStrictEqual(of("store"), []);
});

Deno.test("machineChecks() says that a named store does not answer", async () => {
  using _ = withoutEnvironments();
  const checks = await machineChecks("nowhere", { store: "postgres://nobody@127.0.0.1:1/none" });
  deepStrictEqual(
    checks.filter(({ name }) => name === "store").map(({ verdict }) => verdict),
    ["FAIL"],
  );
});
