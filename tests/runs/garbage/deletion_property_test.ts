import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { MemoryStore } from "../../../testing/mod.ts";
import { POSTGRES_MISSING, testSchema } from "../../postgres.ts";
import { FOUND, ids, removers, step } from "./deletion_steps.ts";
import { REMOVING_STAGES } from "../../flows/stages/removing_stages.ts";

Deno.test("gc and a run's stages: whatever is linked, lost, swapped or copied, nothing outside and nothing of another run, journal or home goes", async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(ids, fc.array(step, { maxLength: 8 }), async (ids, steps) => {
      for (const what of await removers(() => new MemoryStore(), [ids, steps])) seen.add(what);
    }),
    { numRuns: 40, examples: FOUND },
  );
  deepStrictEqual(
    [...seen].sort(),
    ["gc", ...REMOVING_STAGES.map((stage) => `stage ${stage}`)].sort(),
  );
});

Deno.test({
  name: "gc: the same with a PostgreSQL that the homes share",
  ignore: POSTGRES_MISSING !== null,
  fn: async () => {
    const schemas: ReturnType<typeof testSchema>[] = [];
    const newShared = () => {
      const schema = testSchema();
      schemas.push(schema);
      return schema.open();
    };
    try {
      await fc.assert(
        fc.asyncProperty(
          ids,
          fc.array(step, { maxLength: 6 }),
          async (...steps) => void await removers(newShared, steps),
        ),
        { numRuns: 4 },
      );
    } finally {
      for (const schema of schemas) await schema.dispose();
    }
  },
});
