import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { kills, verdicts } from "./kills.ts";

/** Ten of the seeded kills; the whole list is one command: `deno run -A tests/crash/kills.ts`. */
Deno.test("quickstart_small killed at 10 seeded points ends bit-identical to an undisturbed run", async () => {
  const state = await Deno.makeTempDir({ prefix: "holdfast-kills-" });
  try {
    const all = await kills({ counts: { engine: 6, trainer: 2, sampler: 2 }, seed: 7, state });
    strictEqual(all.length, 10);
    deepStrictEqual(verdicts(all), []);
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});
