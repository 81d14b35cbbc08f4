/** The gate's part of `deletion_property_test.ts`: what it has found, and a few random histories. */
import fc from "fast-check";
import { MemoryStore } from "../../../testing/mod.ts";
import { FOUND, ids, removers, step } from "./deletion_steps.ts";

Deno.test("gc and a run's stages remove nothing of others in a history that once lost something, nor in a few new ones", async () => {
  await fc.assert(
    fc.asyncProperty(
      ids,
      fc.array(step, { maxLength: 8 }),
      async (...steps) => void await removers(() => new MemoryStore(), steps),
    ),
    { numRuns: FOUND.length + 2, examples: FOUND },
  );
});
