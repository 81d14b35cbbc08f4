import { strictEqual } from "node:assert/strict";
import { SMALL, withFreshHome } from "./runs.ts";
import { assertEqualEnd, survive } from "./survive.ts";
import { sharedUndisturbed } from "./undisturbed.ts";

/**
 * Durable writes between two kills. With fake workers every write is hit:
 * `tests/engine/executor/crash_property_test.ts`.
 */
const STRIDE = 7;

Deno.test("a small run with real workers, killed at one durable write after another, ends equal each time", async (t) => {
  const against = await sharedUndisturbed(SMALL);
  const writes =
    against.events.filter(({ place, event }) => place === "engine" && event === "append").length;
  for (let n = STRIDE; n <= writes; n += STRIDE) {
    await t.step(`at write ${n} of ${writes}`, () =>
      withFreshHome(async (home) => {
        const place = { home, store: null };
        const fault = `kill:engine@append:${n}`;
        const { deaths, last } = await survive(place, {
          run: "killed",
          config: SMALL,
          overrides: [],
          fault,
        });
        strictEqual(deaths, 1);
        strictEqual(last.code, 0, last.output);
        await assertEqualEnd(place, "killed", against);
      }));
  }
});
