import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { kills, verdicts } from "./kills.ts";

/** Twelve of the seeded kills; the whole list is one command: `deno run -A tests/crash/kills.ts`. */
Deno.test("quickstart_small killed at 6 seeded points per store ends bit-identical to an undisturbed run", async () => {
  const state = await Deno.makeTempDir({ prefix: "holdfast-kills-" });
  try {
    const all = await kills({ stores: ["sqlite"], count: 12, seed: 7, state });
    strictEqual(all.length, 12);
    deepStrictEqual(verdicts(all), []);
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});
