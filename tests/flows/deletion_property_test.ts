import fc from "fast-check";
import { MemoryStore } from "../../engine/testing.ts";
import { POSTGRES_MISSING, testSchema } from "../postgres.ts";
import { type Step, World } from "./deletion_world.ts";

const n = fc.nat(5);
const folder = fc.constantFrom("runs" as const, "checkpoints" as const, "logs" as const);
const is = <T extends string>(...names: T[]) => fc.constantFrom(...names);
const gc = fc.record({ do: is("gc"), home: n, shared: fc.boolean(), logs: fc.boolean(), dry_run: fc.boolean() });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: gc },
  {
    weight: 3,
    arbitrary: fc.record({ do: is("link_inside"), home: n, folder: is("runs", "checkpoints"), run: n, to: n }),
  },
  fc.record({
    do: is("run"),
    home: n,
    shared: fc.boolean(),
    run: is("a", "c", "a-copy", "shared0", "home0", "000001"),
  }),
  fc.record({ do: is("link_folder"), home: n, folder: is("runs", "checkpoints", "logs", "artifacts"), to: n }),
  fc.record({ do: is("link_run", "swap", "copy_run"), home: n, folder, from: n, to: n }),
  fc.record({ do: is("lose"), home: n, what: is("nonce", "stores", "journal", "owner", "run", "folder"), at: n }),
  fc.record({ do: is("garble"), home: n, what: is("nonce", "stores", "owner"), at: n }),
  fc.record({ do: is("move", "copy"), home: n }),
);
/** Whatever was done, every home collects at the end, with each of its journals. */
const LAST: Step[] = [0, 1, 2].flatMap((home) =>
  [false, true].map((shared): Step => ({ do: "gc", home, shared, logs: true, dry_run: false }))
);

async function never(newShared: () => MemoryStore | ReturnType<ReturnType<typeof testSchema>["open"]>, steps: Step[]) {
  const world = await World.make(newShared);
  try {
    for (const step of [...steps, ...LAST]) await world.take(step);
  } finally {
    await world.dispose();
  }
}

Deno.test("gc: whatever is linked, lost, swapped or copied, nothing outside and nothing of another run, journal or home goes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), (steps) => never(() => new MemoryStore(), steps)),
    { numRuns: 40 },
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
      await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 6 }), (steps) => never(newShared, steps)), {
        numRuns: 4,
      });
    } finally {
      for (const schema of schemas) await schema.dispose();
    }
  },
});
