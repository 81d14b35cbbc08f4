import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { inProcess } from "../in_process.ts";

const home = await freshFakeHome();
for (const [id, rounds] of [["a", 1], ["b", 1], ["longer", 2]] as const) {
  await createFakeRun(home, id, { rounds });
  await executeFake(home, id);
}
const diff = async (...args: string[]) => await inProcess(["diff", ...args], { home });

Deno.test("diff of two equal runs names every part as the same", async () => {
  const { code, out } = await diff("a", "b");
  strictEqual(code, 0);
  const [a, b, ...parts] = out.trimEnd().split("\n");
  deepStrictEqual([a, b], ["- a", "+ b"]);
  deepStrictEqual(parts.filter((line) => !/^\w+ +the same$/.test(line)), []);
  strictEqual(parts.length, 12);
});

Deno.test("diff names the setting, the loop and the ledger that differ", async () => {
  const lines = (await diff("a", "longer")).out.split("\n");
  const found = lines.filter((line) => /^(config|rounds|ledger) /.test(line));
  deepStrictEqual(found, [
    "config     rounds 1 -> 2",
    "rounds     round 1 -> 2",
    "ledger     read 2 -> 4",
    "ledger     trained 2 -> 4",
  ]);
  match(lines.join("\n"), /^weights {4}digest [0-9a-f]{12} -> [0-9a-f]{12}$/m);
});

Deno.test("diff --json says whether the runs are equal", async () => {
  const equal = async (b: string) => JSON.parse((await diff("a", b, "--json")).out).equal;
  deepStrictEqual([await equal("b"), await equal("longer")], [true, false]);
});
