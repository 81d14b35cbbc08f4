import { strictEqual } from "node:assert/strict";
import { REFERENCE_S, slowness } from "./yardstick.ts";

/** The slowness of a machine on which the work takes these parts of the reference, in turn. */
async function of(...parts: number[]): Promise<number> {
  let [now, tries] = [0, 0];
  const work = () => {
    now += parts[tries++ % parts.length]! * REFERENCE_S * 1000;
    return Promise.resolve();
  };
  return await slowness({ work, now: () => now });
}

Deno.test("slowness() is what the best of some tries took, and at least 1", async () => {
  strictEqual(Math.round(await of(9, 3, 2) * 1e6) / 1e6, 2);
  strictEqual(await of(0.5), 1);
});
